"""Commands with many lines that end early: a closed pipe, a dead service, responses of another program."""

from __future__ import annotations

import os
import pty
import re

import pytest

from extcli import clock
from extcli.bulk.report import ResumePoint
from support.program import SECRET_BASE64, http_response

SIGNED = {"EXTCLI_SECRET": SECRET_BASE64}


def test_a_closed_pipe_of_refusals_exits_0(shell):
    """`extcli vote cast --from - -o jsonl | head -1`"""
    process = shell("vote", "cast", "--from", "-", "-o", "jsonl")
    process.stdin.write(b"U1,300\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b'{"line":1')
    process.stdout.close()
    process.stdin.write(b"U1,300\n" * 2000)
    process.stdin.close()

    assert 0 == process.wait(timeout=20)
    assert b"" == process.stderr.read()


def test_a_service_that_dies_while_tokens_are_fetched_is_one_error(shell, tmp_path, answering):
    """The tokens for the seventh batch fail while six batches wait for the first vote to be accepted."""
    (tmp_path / "ballots.csv").write_text("U1,1\n" * 4000)
    tokens = [http_response("200 OK", '{"token":"a.b.c"}')] * 6
    url = answering(*tokens, http_response("503 Service Unavailable"), hold=True)
    arguments = ("--from", str(tmp_path / "ballots.csv"), "--url", url, "--concurrency", "1", "--timeout", "500ms")

    process = shell("vote", "cast", *arguments)
    _, stderr = process.communicate(timeout=20)

    assert 3 == process.returncode
    assert f"extcli: no response from {url} in time" == stderr.decode().splitlines()[0]
    assert 2 == len(stderr.splitlines())


@pytest.mark.parametrize(
    ("body", "content_type"),
    [("<html>please log in</html>", "text/html"), ("[]", "application/json"), ("", "text/plain")],
    ids=["page", "list", "nothing"],
)
def test_success_without_a_json_object_is_not_accepted(extcli, answering, body, content_type):
    url = answering(http_response("200 OK"), http_response("200 OK", body, content_type))

    result = extcli("vote", "cast", "--from", "-", "--url", url, input="U1,1\n" * 3, env=SIGNED, fails=5)

    assert "1 sent, 1 accepted, 0 refused" in result.stderr
    assert "stopped; all lines up to 1 are processed" in result.stderr
    assert "POST /v1/e/vote returned an unexpected response" in result.stderr


@pytest.mark.parametrize(
    ("refusal", "advice"),
    [
        (http_response("403 Forbidden"), "this identity may not do that: use another token, or another role with --as"),
        (http_response("302 Found", location="https://elsewhere.example"), "it redirects to https://elsewhere.example"),
        (http_response("500 Internal Server Error"), "send the remaining lines when the service works again"),
        (http_response("503 Service Unavailable"), "send the remaining lines when the service works again"),
    ],
    ids=["403", "302", "500", "503"],
)
def test_an_error_that_affects_every_line_ends_with_advice(extcli, answering, refusal, advice):
    result = extcli("vote", "cast", "--from", "-", "--url", answering(refusal), input="U1,1\n", env=SIGNED)

    *_, what, fix = [line for line in result.stderr.splitlines() if line != "  {}"]
    assert what.startswith("extcli: line 1: POST /v1/e/vote")
    assert fix.startswith(f"  {advice}")


def test_a_400_refuses_its_line_and_the_run_continues(extcli, answering):
    url = answering(http_response("400 Bad Request"), http_response("200 OK"))

    result = extcli("accumulate", "add", "--from", "-", "--url", url, input="1\n2\n", env=SIGNED, exits=4)

    assert "2 sent, 1 accepted, 1 refused" in result.stderr


def test_a_line_that_was_redirected_was_not_applied(extcli, answering):
    url = answering(http_response("300 Multiple Choices"))

    result = extcli("accumulate", "add", "--from", "-", "--url", url, "-o", "json", input="1\n", env=SIGNED)

    assert ([], [1]) == (result.json["unacknowledged"], result.json["not_sent"])


def test_the_reported_seconds_are_the_duration_of_the_run(extcli):
    before = clock.elapsed()

    result = extcli("accumulate", "add", "--from", "-", "-o", "json", input="1\n")

    assert 0 < result.json["seconds"] <= clock.elapsed() - before


def test_refusals_after_the_twentieth_are_counted(extcli):
    result = extcli("vote", "cast", "--from", "-", input="U1,x\n" * 22)

    assert "  and 2 more (-o jsonl shows all)\n" in result.stderr


# Resuming a command with many lines that ended early: its report, and `--skip`


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


def test_all_lines_are_settled_after_the_last_response():
    lines = resume_point(3, acknowledged=[1, 2, 3], sent=[])

    assert 3 == lines.last_settled_line


# The progress bar of commands with many lines


def test_one_line_is_singular_in_the_progress_bar(shell):
    controller, terminal = pty.openpty()
    process = shell("vote", "cast", "--from", "-", stderr=terminal, env={"TERM": "xterm-256color", "COLUMNS": "80"})
    os.close(terminal)
    process.stdin.write(b"U1,3\n")
    process.stdin.flush()

    shown = b""
    while b"1 line" not in shown:
        shown += os.read(controller, 65536)
    process.stdin.close()
    try:
        while chunk := os.read(controller, 65536):
            shown += chunk
    except OSError:  # the program has ended
        pass
    os.close(controller)

    assert 0 == process.wait(timeout=20)
    assert b"0 lines" in shown
    assert b"1 lines" not in shown


# `--verbose` in commands with many lines


def test_verbose_shows_the_request_of_each_line(extcli):
    result = extcli("vote", "cast", "lunch", "--from", "-", "-v", input="U1,3\nU1,300\n")

    lines = [line for line in result.stderr.splitlines() if re.match(r"[<>] line ", line)]
    trace = [re.sub(r"http://[^/]*|, [\d.]+ ms", "", line) for line in lines]
    assert [
        "> line 1: POST /v1/e/vote?id=lunch",
        "> line 1: authorization: my-extension ***",
        "> line 1: 11 bytes",
        "< line 1: 200 OK",
        "> line 2: POST /v1/e/vote?id=lunch",
        "> line 2: authorization: my-extension ***",
        "> line 2: 13 bytes",
        "< line 2: 400 Bad Request",
    ] == trace


def test_verbose_shows_the_request_for_tokens(extcli):
    result = extcli("vote", "cast", "--from", "-", "-v", "-o", "json", input="U1,3\nU2,4\n")

    assert 1 == len(re.findall(r"^> POST http://\S+/v1/e/authtoken$", result.stderr, re.MULTILINE))


def test_verbose_shows_no_secrets(extcli):
    for variables in ({}, {"EXTCLI_SECRET": SECRET_BASE64}):
        result = extcli("vote", "cast", "--from", "-", "-v", input="U1,3\n", env=variables)

        assert "> line 1: authorization: my-extension ***" in result.stderr
        assert SECRET_BASE64 not in result.stderr
        assert "eyJ" not in result.stderr


def test_without_verbose_nothing_is_traced(extcli):
    assert 1 == len(extcli("vote", "cast", "--from", "-", input="U1,3\n").stderr.splitlines())
