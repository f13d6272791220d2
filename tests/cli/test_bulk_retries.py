"""Commands with many lines retry after 429 and 503, and repeat nothing that adds up."""

from __future__ import annotations

import pytest

from emulator.core.settings import Limits, Settings
from support.program import SECRET_BASE64, http_response
from support.service import live_server

RATE_LIMITED = "the service limits the rate; slowing down"
RETRYING = "the service is unavailable; retrying"
SIGNED = {"EXTCLI_SECRET": SECRET_BASE64}
UNAVAILABLE = http_response("503 Service Unavailable", retry_after="0", connection="close")
UNDEFINED = http_response("404 Not Found", connection="close")


TOO_MANY = '{"reason": "Too many requests"}'


@pytest.mark.parametrize(
    "when", [{}, {"retry_after": "0"}, {"retry_after": "soon"}, {"retry_after": "Sat, 21 Nov 2020 20:00:00 GMT"}]
)
def test_a_429_slows_the_run_and_refuses_no_line(extcli, answering, when):
    too_many = http_response("429 Too Many Requests", TOO_MANY, **when)
    url = answering(too_many, http_response("200 OK"), http_response("200 OK"))

    result = extcli("vote", "cast", "--from", "-", "--url", url, input="U1,1\nU1,2\n", env=SIGNED, exits=0)

    assert 1 == result.stderr.count(RATE_LIMITED)
    assert "2 sent, 2 accepted, 0 refused" in result.stderr


@pytest.mark.parametrize("when", ["3600", "Fri, 21 Nov 2098 20:00:00 GMT"])
def test_a_429_beyond_the_timeout_ends_the_run(extcli, answering, when):
    too_many = http_response("429 Too Many Requests", TOO_MANY, retry_after=when)
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
        (
            ("vote", "cast"),
            (
                UNAVAILABLE,
                UNAVAILABLE,
                http_response("200 OK", '{"totalVotesPerUser": 1}', connection="close"),
                http_response("200 OK"),
            ),
        ),
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
        (
            ("vote", "cast"),
            "U1,1\nU1,2\nU1,3\n",
            (http_response("200 OK", '{"totalVotesPerUser": 9}', connection="close"),),
        ),
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
    assert "  to resume, add --skip 1: a repeated answer replaces the first\n" in result.stderr
    assert "  send the remaining lines when the service works again" in result.stderr


def test_a_503_without_retry_after_is_final(extcli, answering):
    url = answering(http_response("503 Service Unavailable"), http_response("200 OK"))

    result = extcli("rank", "submit", "--from", "-", "--url", url, input="U1,a\n", env=SIGNED, exits=5)

    assert RETRYING not in result.stderr


# Tokens that a sandbox issues for the lines


@pytest.mark.parametrize("command", ["vote cast", "accumulate add"])
@pytest.mark.parametrize("status", ["429", "503"])
def test_a_token_is_requested_again_if_the_service_asks_to_wait(extcli, command, status):
    fault = ("--match", "POST /v1/e/authtoken", "--times", "1", "--status", status, "--retry-after", "0")
    extcli("fault", "add", *fault, exits=0)

    result = extcli(*command.split(), "--from", "-", input="U1,1\n" if command == "vote cast" else "1\n", exits=0)

    assert "1 sent, 1 accepted, 0 refused" in result.stderr


@pytest.mark.parametrize(
    ("refusal", "code", "advice"),
    [
        (http_response("429 Too Many Requests", retry_after="3600"), 4, "at a lower rate"),
        (http_response("503 Service Unavailable"), 5, "the request itself was fine"),
        (http_response("500 Internal Server Error"), 5, "the request itself was fine"),
        (http_response("403 Forbidden"), 4, "only a sandbox issues tokens"),
        (http_response("200 OK", "<html>", "text/html"), 5, "is an extension service"),
    ],
    ids=["429 beyond the timeout", "503 without a time", "500", "403", "a page"],
)
def test_a_token_refused_for_good_ends_the_run_at_once(extcli, answering, refusal, code, advice):
    url = answering(refusal, http_response("200 OK", '{"token": "a.b.c"}'))

    result = extcli("vote", "cast", "--from", "-", "--url", url, input="U1,1\n", fails=code)

    assert advice in result.stderr
    assert (advice == "only a sandbox issues tokens") == ("EXTCLI_SECRET " in result.stderr)
