"""Many lines that ended early are gone on with: what is said of each line, and `--skip`."""

from __future__ import annotations

import pytest

from extcli.bulk.resume import ResumePoint
from support.program import SECRET_BASE64, http_response

SIGNED = {"EXTCLI_SECRET": SECRET_BASE64}


@pytest.mark.parametrize(
    ("skip", "voters"),
    [(0, ["U1", "U2", "U3"]), (1, ["U1", "U2", "U3"]), (2, ["U2", "U3"]), (3, ["U2", "U3"]), (4, ["U3"]), (9, [])],
)
def test_lines_up_to_a_number_are_left_out_by_the_numbers_of_the_file(extcli, lines, skip, voters):
    ballots = lines("value,user", "3,U1", "", "3,U2", "3,U3")

    result = extcli("vote", "cast", "--from", ballots, "--skip", str(skip))

    assert (0, voters) == (result.exit_code, sorted(row[0] for row in extcli("vote", "logs").rows))


def test_answers_and_blobs_are_skipped_as_well(extcli, lines):
    extcli("rank", "submit", "--skip", "1", "--from", lines("U1,a", "U2,b"))
    extcli("accumulate", "add", "--skip", "1", "--from", lines("nonsense", '{"n":2}'))

    assert [["b", "1"]] == extcli("rank", "get").rows
    assert [{"n": 2}] == [entry["data"] for entry in extcli("accumulate", "get", "-o", "jsonl").jsonl]


def test_a_program_is_told_of_each_line_what_became_of_it(extcli, answering):
    url = answering(http_response("200 OK"), http_response("500 Internal Server Error"))

    result = extcli("accumulate", "add", "--from", "-", "--url", url, "-o", "json", input="1\n2\n3\n", env=SIGNED)

    assert {"dealt_with_to": 1, "unacknowledged": [2], "not_sent": [], "nothing_sent_after": 2} == {
        name: result.json[name] for name in ("dealt_with_to", "unacknowledged", "not_sent", "nothing_sent_after")
    }


def test_a_first_line_that_may_have_been_done_is_told_and_one_that_found_nobody_is_not(extcli, answering):
    failing = answering(http_response("500 Internal Server Error"))

    told = extcli("accumulate", "add", "--from", "-", "--url", failing, input="1\n2\n", env=SIGNED)
    nobody = extcli("accumulate", "add", "--from", "-", "--url", "http://127.0.0.1:1", input="1\n2\n", env=SIGNED)

    assert "  sent, not acknowledged, and so done or not: line 1\n" in told.stderr
    assert (3, "extcli: nobody answers at http://127.0.0.1:1") == (nobody.exit_code, nobody.stderr.splitlines()[0])


def reached(begun: int, *, acknowledged: list[int], sent: list[int]) -> ResumePoint:
    lines = ResumePoint()
    lines.begin(range(1, begun + 1))
    for number in acknowledged + sent:
        lines.send(number)
    for number in acknowledged:
        lines.settle(number)
    return lines


def test_a_line_is_dealt_with_or_not_acknowledged_or_not_sent():
    lines = reached(20, acknowledged=[1, 2, 4, 9], sent=[3, 6, 7])

    assert [
        "every line up to 2 is dealt with",
        "  sent, not acknowledged, and so done or not: lines 3, 6-7",
        "  not sent: lines 5, 8",
        "  nothing was sent after line 9: --skip 9 goes on there",
    ] == lines.remarks("")


def test_what_may_be_sent_again_is_gone_on_with_after_the_last_line_before_which_all_are_dealt_with():
    lines = reached(20, acknowledged=[1, 2, 4, 9], sent=[3])

    assert "  to go on, add --skip 2: it replaces itself" == lines.remarks("it replaces itself")[-1]


def test_a_line_that_the_service_did_not_do_is_one_that_was_not_sent():
    lines = reached(5, acknowledged=[1], sent=[2, 3])

    lines.take_back(3)

    assert ([2], [3]) == (lines.unacknowledged, lines.left_out)


def test_many_runs_of_lines_are_not_all_named():
    lines = reached(2000, acknowledged=[1], sent=list(range(3, 2001, 2)))

    assert lines.remarks("")[1].endswith(" 999, 1001 and 499 more (-o json names them all)")
