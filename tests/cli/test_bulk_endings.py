"""Commands with many lines that end early: a closed pipe, a dead service, responses of another program."""

from __future__ import annotations

import re

import pytest

from extcli.bulk.report import Report
from extcli.output.format import Format
from extcli.output.printer import Output
from support.journal import entries_of
from support.program import SECRET_BASE64, http_response
from support.service import LiveServer
from support.terminal import Terminal

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

    assert 0 == process.wait(timeout=60)
    assert b"" == process.stderr.read()


def test_a_service_that_dies_while_tokens_are_fetched_is_one_error(extcli, lines, answering):
    """The tokens for the seventh batch fail while six batches wait for the first vote to be accepted."""
    ballots = lines(*["U1,1"] * 4000)
    tokens = [http_response("200 OK", '{"token":"a.b.c"}')] * 6
    url = answering(*tokens, http_response("503 Service Unavailable"), hold=True)
    arguments = ("--from", ballots, "--url", url, "--concurrency", "1", "--timeout", "500ms")

    said = extcli("vote", "cast", *arguments, fails=3).stderr.splitlines()

    assert f"extcli: no response from {url} in time" == said[0]
    assert 2 == len(said)


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


# Resuming a command with many lines that ended early: its report, and `--skip`


@pytest.mark.parametrize(
    ("skip", "voters"),
    [(0, ["U1", "U2", "U3"]), (1, ["U1", "U2", "U3"]), (2, ["U2", "U3"]), (3, ["U2", "U3"]), (4, ["U3"]), (9, [])],
)
def test_skip_counts_lines_of_the_file(extcli, lines, skip, voters):
    ballots = lines("value,user", "3,U1", "", "3,U2", "3,U3")

    result = extcli("vote", "cast", "--from", ballots, "--skip", str(skip))

    assert (0, voters) == (result.exit_code, sorted(row[0] for row in extcli("vote", "logs").rows))


@pytest.mark.parametrize(
    ("answer", "unacknowledged", "not_sent"),
    [
        (http_response("500 Internal Server Error"), [2], []),
        (http_response("300 Multiple Choices"), [], [2]),
    ],
    ids=["500", "a redirection"],
)
def test_json_output_has_the_state_of_each_line(extcli, answering, answer, unacknowledged, not_sent):
    url = answering(http_response("200 OK"), answer)

    found = extcli("accumulate", "add", "--from", "-", "--url", url, "-o", "json", input="1\n2\n3\n", env=SIGNED).json

    assert {"dealt_with_to": 1, "unacknowledged": unacknowledged, "not_sent": not_sent}.items() <= found.items()


@pytest.mark.parametrize(
    ("repeatable", "where"),
    [
        ("", ["  not sent: lines 5, 8", "  nothing was sent after line 9; --skip 9 resumes there"]),
        ("it is harmless", ["  to resume, add --skip 2: it is harmless"]),
    ],
)
def test_lines_are_processed_unconfirmed_or_not_sent(capsys, repeatable: str, where: list[str]):
    report = Report(Output(Format.PLAIN, quiet=False, verbose=False))
    report.add(range(1, 21))
    for number in (1, 2, 3, 4, 6, 7, 8, 9):
        report.mark_sent(number)
    for number in (1, 2, 4, 9):
        report.accept(number)
    report.mark_not_applied(8)
    report.finish("stopped", repeatable=repeatable)

    assert [
        "stopped; all lines up to 2 are processed",
        "  sent but unconfirmed: lines 3, 6-7",
        *where,
    ] == capsys.readouterr().err.splitlines()[1:]


# The progress bar of commands with many lines


def test_a_terminal_shows_how_far_a_file_is_sent(extcli, lines):
    extcli("fault", "add", "--match", "POST /v1/e/vote", "--delay", "20ms")
    ballots = ("--from", lines(*["U1,3"] * 150), "--concurrency", "1")

    with Terminal("vote", "cast", *ballots, TERM="xterm-256color") as terminal:
        terminal.read_until(" of 150 · ")
        terminal.read_until(" s left")
        terminal.read_until("150 accepted")


# `--verbose` in commands with many lines


def test_verbose_shows_the_request_of_each_line(extcli):
    result = extcli("vote", "cast", "lunch", "--from", "-", "-v", input="U1,3\nU1,300\n")

    lines = [line for line in result.stderr.splitlines() if re.match(r"[<>] line ", line)]
    trace = [re.sub(r"http://[^/]*|, [\d.]+ ms", "", line) for line in lines]
    assert [
        "> line 1: POST /v1/e/vote?id=lunch, authorization: my-extension ***, 11 bytes",
        "< line 1: 200 OK",
        "> line 2: POST /v1/e/vote?id=lunch, authorization: my-extension ***, 13 bytes",
        "< line 2: 400 Bad Request",
    ] == trace


# The id of the poll, ranking or buffer, which all lines share


@pytest.mark.parametrize(
    "command",
    [
        ("vote", "cast", "a b"),
        ("rank", "submit", "x" * 2_000),
        ("accumulate", "add", "a\tb"),
        ("vote", "cast", "lunch"),
    ],
    ids=["poll", "ranking", "buffer", "a closed poll"],
)
def test_an_id_that_is_refused_ends_the_run_at_its_first_line(extcli, live: LiveServer, command: tuple[str, ...]):
    extcli("vote", "define", "lunch", "--options", "a,b")
    extcli("vote", "close", "lunch")
    lines = "".join(f"U{number},1\n" for number in range(50)) if command[0] != "accumulate" else '{"a":1}\n' * 50
    noun, verb, id = command

    result = extcli(noun, verb, "--from", "-", "--concurrency", "1", id, input=lines, exits=4)

    assert 1 == len([each for each in entries_of(live) if each["status"] == 400])
    assert "line 1: " in result.stderr
