"""Commands with many lines retry after 429 and 503, and repeat nothing that adds up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.config.settings import Limits, Settings
from engines.redis_server import RedisServer
from extcli.api.http import Http
from extcli.api.token_sources import SandboxTokens
from extcli.config.settings import Identity
from support.process import server_process
from support.program import SECRET_BASE64, http_response
from support.service import CHANNEL, CLIENT_ID, LiveServer, live_server

RATE_LIMITED = "the service limits the rate; slowing down"
RETRYING = "the service is unavailable; retrying"
SIGNED = {"EXTCLI_SECRET": SECRET_BASE64}
UNAVAILABLE = http_response("503 Service Unavailable", retry_after="0")
UNDEFINED = http_response("404 Not Found")


@pytest.fixture
def limited() -> Iterator[LiveServer]:
    """Accepts 100 requests of a client id at once, then 20 per second."""
    with live_server(Settings(limits=Limits(client_rate=20))) as live:
        yield live


def test_rate_limited_lines_are_retried_and_reported_once(extcli, limited: LiveServer):
    blobs = "".join(f'{{"number": {number}}}\n' for number in range(140))
    environment = {**SIGNED, "EXTCLI_CHANNEL": CHANNEL}

    result = extcli("accumulate", "add", "all", "--from", "-", "--url", limited.url, input=blobs, env=environment)

    limited.advance(1_000)  # so that the rate allows one more request
    stored = limited.client("backend", channel=CHANNEL).get("accumulate", params={"id": "all"}).json()["data"]
    assert 0 == result.exit_code, result.stderr
    assert 1 == result.stderr.count(RATE_LIMITED)
    assert "140 sent, 140 accepted, 0 refused" in result.stderr
    assert list(range(140)) == sorted(each["data"]["number"] for each in stored)


def test_a_429_is_retried_even_if_the_request_adds_up(extcli, answering):
    url = answering(http_response("429 Too Many Requests", retry_after="0"), http_response("200 OK"))

    result = extcli("accumulate", "add", "--from", "-", "--url", url, input="1\n", env=SIGNED, exits=0)

    assert "1 sent, 1 accepted, 0 refused" in result.stderr


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


@pytest.mark.long
def test_votes_are_retried_until_storage_is_back(shell, tmp_path: Path):
    with RedisServer(tmp_path) as redis, server_process("--data", redis.url(), "--log-level", "critical") as served:
        redis.kill()
        process = shell("vote", "cast", "--from", "-", "--url", served.url, env={**SIGNED, "EXTCLI_CHANNEL": CHANNEL})
        process.stdin.write(b"".join(b"U%d,3\n" % user for user in range(100)))
        process.stdin.close()
        assert f"{RETRYING}\n" == process.stderr.readline().decode()
        redis.start()

        assert 0 == process.wait(timeout=60)
        assert b"100 sent, 100 accepted, 0 refused" in process.stderr.read()
        assert 100 == len(served.client("backend", channel=CHANNEL).get("vote_logs").json()["result"])


@pytest.mark.parametrize(
    ("command", "answers"),
    [
        (("vote", "cast"), (UNAVAILABLE, UNDEFINED, UNAVAILABLE, http_response("200 OK"))),
        (
            ("vote", "cast"),
            (UNAVAILABLE, UNAVAILABLE, http_response("200 OK", '{"totalVotesPerUser": 1}'), http_response("200 OK")),
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
        (("vote", "cast"), "U1,1\nU1,2\nU1,3\n", (http_response("200 OK", '{"totalVotesPerUser": 9}'),)),
        (("vote", "cast"), "U1,1\nU1,2\nU1,3\n", (http_response("403 Forbidden"),)),
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

BULK = {
    "vote cast": "U1,1\n",
    "rank submit": "U1,a\n",
    "accumulate add": "1\n",
    "accumulate add --user-field user": '{"user": "U1"}\n',
}


def refuse_one_token(extcli, *fault: str) -> None:
    extcli("fault", "add", "--match", "POST /v1/e/authtoken", "--times", "1", *fault, exits=0)


@pytest.mark.parametrize("command", BULK)
@pytest.mark.parametrize("status", ["429", "503"])
def test_a_token_is_requested_again_if_the_service_asks_to_wait(extcli, command, status):
    refuse_one_token(extcli, "--status", status, "--retry-after", "0")

    result = extcli(*command.split(), "--from", "-", input=BULK[command], exits=0)

    assert "1 sent, 1 accepted, 0 refused" in result.stderr


def test_the_tokens_of_a_crowd_are_requested_again_if_the_service_asks_to_wait(extcli, live):
    refuse_one_token(extcli, "--status", "503", "--retry-after", "0")
    http = Http(live.url, timeout=20, trace=None)

    tokens = SandboxTokens(CLIENT_ID, Identity("viewer"), CHANNEL, http).tokens_for(["U1", "U2"])

    http.close()
    assert 2 == len(tokens)


@pytest.mark.parametrize(
    ("refusal", "code", "advice"),
    [
        (http_response("429 Too Many Requests", retry_after="3600"), 4, "retry later, at a lower rate"),
        (http_response("503 Service Unavailable", retry_after="3600"), 5, "the request itself was fine"),
        (http_response("503 Service Unavailable"), 5, "the request itself was fine"),
        (http_response("500 Internal Server Error"), 5, "the request itself was fine"),
        (http_response("403 Forbidden"), 4, "only a sandbox issues tokens"),
        (http_response("200 OK", "<html>", "text/html"), 5, "is an extension service"),
    ],
    ids=["429 beyond the timeout", "503 beyond the timeout", "503 without a time", "500", "403", "a page"],
)
def test_a_token_refused_for_good_ends_the_run_at_once(extcli, answering, refusal, code, advice):
    url = answering(refusal, http_response("200 OK", '{"token": "a.b.c"}'))

    result = extcli("vote", "cast", "--from", "-", "--url", url, input="U1,1\n", fails=code)

    assert advice in result.stderr
    assert (advice == "only a sandbox issues tokens") == ("EXTCLI_SECRET " in result.stderr)
