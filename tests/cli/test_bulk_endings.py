"""Commands with many lines that end early, and how they retry after 429 and 503 without repeating what adds up."""

from __future__ import annotations

import re
import shlex

import pytest

from emulator.core.settings import Limits, Settings
from extcli.bulk.report import RunReport
from extcli.output.format import Format
from extcli.output.printer import Output
from support.journal import entries_of
from support.program import SECRET_BASE64, http_response
from support.service import LiveServer, live_server
from support.terminal import Terminal

SIGNED = {"EXTCLI_SECRET": SECRET_BASE64}


def test_a_closed_pipe_of_refusals_exits_0(shell):
    """`extcli vote cast --from - -o jsonl | head -1`"""
    process = shell("vote", "cast", "--from", "-", "-o", "jsonl")
    process.stdin.write("U1,300\n")
    assert process.stdout.readline().startswith('{"line":1')
    process.stdout.close()
    process.stdin.write("U1,300\n" * 2000)
    process.stdin.close()

    assert 0 == process.wait(timeout=60)
    assert "" == process.stderr.read()


def test_a_service_that_dies_while_tokens_are_fetched_is_one_error(extcli, lines, answering):
    """The tokens for the seventh batch fail while six batches wait for the first vote to be accepted."""
    ballots = lines(*["U1,1"] * 4000)
    tokens = [http_response("200 OK", '{"token":"a.b.c"}')] * 6
    url = answering(*tokens, http_response("503 Service Unavailable"), hold=True)
    arguments = ("--from", ballots, "--url", url, "--concurrency", "1", "--timeout", "500ms")

    said = extcli("vote", "cast", *arguments, fails=3).stderr.splitlines()

    assert f"extcli: no response from {url} in time" == said[0]
    assert 2 == len(said)


@pytest.mark.parametrize("body", ["<html>please log in</html>", "[]", ""], ids=["page", "list", "nothing"])
def test_success_without_a_json_object_is_not_accepted(extcli, answering, body):
    url = answering(http_response("200 OK"), http_response("200 OK", body, "text/html"))

    result = extcli("vote", "cast", "--from", "-", "--url", url, input="U1,1\n" * 3, env=SIGNED, fails=5)

    assert "1 sent, 1 accepted, 0 refused" in result.stderr
    assert "stopped; all lines up to 1 are processed" in result.stderr
    assert "POST /v1/e/vote returned an unexpected response" in result.stderr


# Resuming a command with many lines that ended early: its report, and `--skip`


def test_skip_counts_lines_of_the_file(extcli, lines):
    ballots = lines("value,user", "3,U1", "", "3,U2", "3,U3")
    everyone = ["U1", "U2", "U3"]

    for skip, voters in ((0, everyone), (1, everyone), (2, everyone[1:]), (3, everyone[1:]), (4, ["U3"]), (9, [])):
        extcli("vote", "cast", f"p{skip}", "--from", ballots, "--skip", str(skip), exits=0)
        assert voters == sorted(row[0] for row in extcli("vote", "logs", f"p{skip}").rows)


@pytest.mark.parametrize(
    ("status", "unacknowledged", "not_sent"),
    [("500 Internal Server Error", [2], []), ("300 Multiple Choices", [], [2])],
)
def test_json_output_has_the_state_of_each_line(extcli, answering, status, unacknowledged, not_sent):
    url = answering(http_response("200 OK"), http_response(status))

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
    report = RunReport(Output(Format.PLAIN, quiet=False, verbose=False))
    report.add_lines(range(1, 21))
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
    ballots = ("--from", lines(*["U1,3"] * 60), "--concurrency", "1")

    with Terminal("vote", "cast", *ballots, TERM="xterm-256color") as terminal:
        terminal.read_until(" of 60")
        terminal.read_until("0:00:0")
        terminal.read_until("60 accepted")


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
    "line", ["vote cast 'a b'", f"rank submit {'x' * 2_000}", "accumulate add 'a\tb'", "vote cast lunch"]
)
def test_an_id_that_is_refused_or_a_closed_poll_ends_the_run_at_its_first_line(extcli, live: LiveServer, line: str):
    extcli("vote", "define", "lunch", "--options", "a,b")
    extcli("vote", "close", "lunch")
    lines = "U1,1\n" * 50 if "accumulate" not in line else '{"a":1}\n' * 50

    result = extcli(*shlex.split(line), "--from", "-", "--concurrency", "1", input=lines, exits=4)

    assert 1 == len([each for each in entries_of(live) if each["status"] == 400])
    assert "line 1: " in result.stderr


# Retries


RATE_LIMITED = "the service limits the rate; slowing down"
RETRYING = "the service is unavailable; retrying"
UNAVAILABLE = http_response("503 Service Unavailable", retry_after="0", connection="close")
UNDEFINED = http_response("404 Not Found", connection="close")
SINGLE, SEVERAL = (http_response("200 OK", f'{{"totalVotesPerUser": {n}}}', connection="close") for n in (1, 9))
TOO_MANY = '{"reason": "Too many requests"}'


def test_a_429_slows_the_run_and_refuses_no_line(extcli, answering):
    too_many = http_response("429 Too Many Requests", TOO_MANY, retry_after="soon")
    url = answering(too_many, http_response("200 OK"), http_response("200 OK"))

    result = extcli("vote", "cast", "--from", "-", "--url", url, input="U1,1\nU1,2\n", env=SIGNED, exits=0)

    assert 1 == result.stderr.count(RATE_LIMITED)
    assert "2 sent, 2 accepted, 0 refused" in result.stderr


def test_a_429_beyond_the_timeout_ends_the_run(extcli, answering):
    too_many = http_response("429 Too Many Requests", TOO_MANY, retry_after="3600")
    url = answering(http_response("200 OK"), too_many, http_response("200 OK"))

    result = extcli("vote", "cast", "--from", "-", "--url", url, input="U1,1\nU1,2\nU1,3\n", env=SIGNED, exits=4)

    assert "stopped; all lines up to 1 are processed" in result.stderr
    assert "line 2: POST /v1/e/vote was refused: 429 Too Many Requests" in result.stderr
    assert "s, at a lower rate" in result.stderr


def test_a_service_that_allows_a_retry_at_once_is_not_flooded(extcli, answering):
    """Each pause is at least 0.1 s, so `--timeout` ends the run long before the service accepts the line."""
    too_many = http_response("429 Too Many Requests", TOO_MANY, retry_after="0")
    url = answering(*[too_many] * 20, http_response("200 OK"))

    result = extcli(
        "vote", "cast", "--from", "-", "--url", url, "--timeout", "500ms", input="U1,1\n", env=SIGNED, exits=4
    )

    assert "line 1: POST /v1/e/vote was refused: 429" in result.stderr


def test_a_rate_limited_single_command_says_when_to_try_again(extcli):
    with live_server(Settings(limits=Limits(caller_rate=1))) as live:
        live.freeze()
        results = [extcli("vote", "get", "--url", live.url) for _ in range(6)]

    assert [0, 0, 0, 0, 0, 4] == [result.exit_code for result in results]
    assert "too many requests from this caller" in results[-1].stderr
    assert "retry in 1 s, at a lower rate" in results[-1].stderr


# 503 with Retry-After


@pytest.mark.parametrize(
    ("command", "answers"),
    [
        (("vote", "cast"), (UNAVAILABLE, UNDEFINED, UNAVAILABLE, http_response("200 OK"))),
        (("vote", "cast"), (UNAVAILABLE, UNAVAILABLE, SINGLE, http_response("200 OK"))),
        (("rank", "submit"), (UNAVAILABLE, UNAVAILABLE, http_response("200 OK"))),
    ],
    ids=["a poll without definition", "a poll with one vote per user", "a ranking"],
)
def test_harmless_requests_are_repeated_and_reported_once(extcli, answering, command, answers):
    result = extcli(*command, "--from", "-", "--url", answering(*answers), input="U1,1\n", env=SIGNED, exits=0)

    assert 1 == result.stderr.count(RETRYING)
    assert "1 sent, 1 accepted, 0 refused" in result.stderr


@pytest.mark.parametrize(
    ("command", "input", "definition"),
    [
        (("accumulate", "add", "all"), "1\n2\n3\n", ()),
        (("vote", "cast"), "U1,1\nU1,2\nU1,3\n", (SEVERAL,)),
        (("vote", "cast"), "U1,1\nU1,2\nU1,3\n", (http_response("403 Forbidden", connection="close"),)),
    ],
    ids=["blobs", "votes that add up", "votes of an unreadable poll"],
)
def test_requests_that_add_up_are_not_repeated_but_named(extcli, answering, command, input, definition):
    url = answering(http_response("200 OK"), UNAVAILABLE, *definition, http_response("200 OK"))

    result = extcli(*command, "--from", "-", "--url", url, input=input, env=SIGNED, exits=5)

    assert (
        "stopped; all lines up to 1 are processed\n"
        "  sent but unconfirmed: line 2\n"
        "  nothing was sent after line 2; --skip 2 resumes there\n"
        f"extcli: line 2: POST /v1/e/{command[0]} failed in the service: 503 Service Unavailable\n"
    ) in result.stderr


def test_retrying_ends_at_the_timeout_and_names_where_to_resume(extcli, answering):
    later = http_response("503 Service Unavailable", retry_after="1")
    url = answering(http_response("200 OK"), later, later)

    result = extcli(
        "rank", "submit", "--from", "-", "--url", url, "--timeout", "1500ms", input="U1,a\n" * 3, env=SIGNED, exits=5
    )

    assert RETRYING in result.stderr
    assert "  sent but unconfirmed: line 2\n" in result.stderr
    assert "  to resume, add --skip 1: an answer sent twice counts once\n" in result.stderr
    assert "  send the remaining lines when the service works again" in result.stderr


def test_a_503_without_retry_after_is_final(extcli, answering):
    url = answering(http_response("503 Service Unavailable"), http_response("200 OK"))

    result = extcli("rank", "submit", "--from", "-", "--url", url, input="U1,a\n", env=SIGNED, exits=5)

    assert RETRYING not in result.stderr


# Tokens that a sandbox issues for the lines


@pytest.mark.parametrize(("command", "status"), [("vote cast", "429"), ("accumulate add", "503")])
def test_a_token_is_requested_again_if_the_service_asks_to_wait(extcli, command, status):
    fault = ("--match", "POST /v1/e/authtoken", "--times", "1", "--status", status, "--retry-after", "0")
    extcli("fault", "add", *fault, exits=0)

    result = extcli(*command.split(), "--from", "-", input="U1,1\n" if command == "vote cast" else "1\n", exits=0)

    assert "1 sent, 1 accepted, 0 refused" in result.stderr


TOKEN = "POST /v1/e/authtoken"


@pytest.mark.parametrize(
    ("of", "refusal", "code", "advice"),
    [
        (TOKEN, http_response("429 Too Many Requests", retry_after="3600"), 4, "at a lower rate"),
        (TOKEN, http_response("503 Service Unavailable"), 5, "the request was valid"),
        (TOKEN, http_response("403 Forbidden"), 4, "only a sandbox issues tokens"),
        (TOKEN, http_response("200 OK", "<html>", "text/html"), 5, "is an extension service"),
        (
            "line 1: POST /v1/e/vote",
            http_response("403 Forbidden"),
            4,
            "this identity may not send this request: use another token",
        ),
        ("line 1: POST /v1/e/vote", http_response("302 Found", location="https://e.example"), 4, "https://e.example"),
        ("line 1: POST /v1/e/vote", http_response("503 Service Unavailable"), 5, "send the remaining lines when"),
    ],
)
def test_an_error_that_affects_every_line_ends_the_run_with_advice(extcli, answering, of, refusal, code, advice):
    url = answering(refusal, http_response("200 OK", '{"token": "a.b.c"}'))

    said = extcli(
        "vote", "cast", "--from", "-", "--url", url, input="U1,1\n", env={} if of == TOKEN else SIGNED, exits=code
    )

    assert of in said.stderr
    assert advice in said.stderr.splitlines()[-1]
