"""Resuming a command with many lines that ended early: its report, and `--skip`."""

from __future__ import annotations

import pytest

from extcli.bulk.report import ResumePoint
from support.program import SECRET_BASE64, http_response

SIGNED = {"EXTCLI_SECRET": SECRET_BASE64}


@pytest.mark.parametrize(
    ("skip", "voters"),
    [(0, ["U1", "U2", "U3"]), (1, ["U1", "U2", "U3"]), (2, ["U2", "U3"]), (3, ["U2", "U3"]), (4, ["U3"]), (9, [])],
)
def test_skip_counts_lines_of_the_file(extcli, lines, skip, voters):
    ballots = lines("value,user", "3,U1", "", "3,U2", "3,U3")

    result = extcli("vote", "cast", "--from", ballots, "--skip", str(skip))

    assert (0, voters) == (result.exit_code, sorted(row[0] for row in extcli("vote", "logs").rows))


def test_skip_works_for_answers_and_blobs(extcli, lines):
    extcli("rank", "submit", "--skip", "1", "--from", lines("U1,a", "U2,b"))
    extcli("accumulate", "add", "--skip", "1", "--from", lines("nonsense", '{"n":2}'))

    assert [["b", "1"]] == extcli("rank", "get").rows
    assert [{"n": 2}] == [entry["data"] for entry in extcli("accumulate", "get", "-o", "jsonl").jsonl]


def test_json_output_contains_the_state_of_each_line(extcli, answering):
    url = answering(http_response("200 OK"), http_response("500 Internal Server Error"))

    result = extcli("accumulate", "add", "--from", "-", "--url", url, "-o", "json", input="1\n2\n3\n", env=SIGNED)

    assert {"dealt_with_to": 1, "unacknowledged": [2], "not_sent": [], "nothing_sent_after": 2} == {
        name: result.json[name] for name in ("dealt_with_to", "unacknowledged", "not_sent", "nothing_sent_after")
    }


def test_only_a_line_that_was_sent_is_reported_as_unconfirmed(extcli, answering):
    failing = answering(http_response("500 Internal Server Error"))

    failed = extcli("accumulate", "add", "--from", "-", "--url", failing, input="1\n2\n", env=SIGNED)
    unreachable = extcli("accumulate", "add", "--from", "-", "--url", "http://127.0.0.1:1", input="1\n2\n", env=SIGNED)

    assert "  sent but unconfirmed: line 1\n" in failed.stderr
    assert (3, "extcli: cannot connect to http://127.0.0.1:1") == (
        unreachable.exit_code,
        unreachable.stderr.splitlines()[0],
    )


def resume_point(total: int, *, acknowledged: list[int], sent: list[int]) -> ResumePoint:
    lines = ResumePoint()
    lines.add(range(1, total + 1))
    for number in acknowledged + sent:
        lines.mark_sent(number)
    for number in acknowledged:
        lines.settle(number)
    return lines


def test_lines_are_processed_unconfirmed_or_not_sent():
    point = resume_point(20, acknowledged=[1, 2, 4, 9], sent=[3, 6, 7])

    assert [
        "all lines up to 2 are processed",
        "  sent but unconfirmed: lines 3, 6-7",
        "  not sent: lines 5, 8",
        "  nothing was sent after line 9; --skip 9 resumes there",
    ] == point.lines("")


def test_repeatable_lines_resume_after_the_last_processed_line():
    point = resume_point(20, acknowledged=[1, 2, 4, 9], sent=[3])

    assert "  to resume, add --skip 2: it is harmless" == point.lines("it is harmless")[-1]


def test_a_line_that_was_not_applied_counts_as_not_sent():
    point = resume_point(5, acknowledged=[1], sent=[2, 3])

    point.mark_not_applied(3)

    assert ([2], [3]) == (point.unacknowledged, point.not_sent)


def test_at_most_500_ranges_of_lines_are_named():
    point = resume_point(2000, acknowledged=[1], sent=list(range(3, 2001, 2)))

    assert point.lines("")[1].endswith(" 999, 1001 and 499 more (-o json shows all)")


def test_all_lines_are_settled_after_the_last_answer():
    lines = resume_point(3, acknowledged=[1, 2, 3], sent=[])

    assert 3 == lines.settled_to
