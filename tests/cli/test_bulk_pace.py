"""Many lines for a service that takes them not now, as it limits how much it is sent, or as it is not well.

They go on at its pace, none is done twice that adds up, and where they end early it is said from where to go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.config.settings import Limits, Settings
from engines.redis_server import RedisServer
from support.process import server_process
from support.program import SECRET_BASE64, http_response
from support.service import CHANNEL, LiveServer, live_server

SLOW = "the service limits how much may be sent at once; going on at its pace"
NOT_NOW = "the service takes nothing for now; trying again"
SIGNED = {"EXTCLI_SECRET": SECRET_BASE64}
UNAVAILABLE = http_response("503 Service Unavailable", retry_after="0")
UNDEFINED = http_response("404 Not Found")


@pytest.fixture
def limited() -> Iterator[LiveServer]:
    """Takes 100 requests of one client id at once, and then 20 a second."""
    with live_server(Settings(limits=Limits(client_rate=20))) as live:
        yield live


def test_every_line_is_accepted_in_the_end_and_the_delay_is_told_once(extcli, limited: LiveServer):
    blobs = "".join(f'{{"number": {number}}}\n' for number in range(140))
    environment = {**SIGNED, "EXTCLI_CHANNEL": CHANNEL}

    result = extcli("accumulate", "add", "all", "--from", "-", "--url", limited.url, input=blobs, env=environment)

    kept = limited.client("backend", channel=CHANNEL).get("accumulate", params={"id": "all"}).json()["data"]
    assert 0 == result.exit_code, result.stderr
    assert 1 == result.stderr.count(SLOW)
    assert "140 sent, 140 accepted, 0 refused" in result.stderr
    assert list(range(140)) == sorted(each["data"]["number"] for each in kept)


@pytest.mark.parametrize("when", [{}, {"retry_after": "3600"}, {"retry_after": "Sat, 21 Nov 2026 20:00:00 GMT"}])
def test_a_line_is_refused_where_the_service_does_not_say_when_to_come_back_or_says_too_late(extcli, answering, when):
    too_many = http_response("429 Too Many Requests", '{"reason": "Too many requests"}', **when)
    url = answering(too_many, http_response("200 OK"))

    result = extcli("vote", "cast", "--from", "-", "--url", url, input="U1,1\nU1,2\n", env=SIGNED)

    assert 4 == result.exit_code
    assert "line 1: 429 Too Many Requests: Too many requests" in result.stderr


def test_one_command_says_when_to_try_again(extcli):
    with live_server(Settings(limits=Limits(caller_rate=1))) as live:
        live.freeze()
        results = [extcli("vote", "get", "--url", live.url) for _ in range(6)]

    assert [0, 0, 0, 0, 0, 4] == [result.exit_code for result in results]
    assert "too many requests from this caller" in results[-1].stderr
    assert "try again in 1 s" in results[-1].stderr


# A service that is not well: 503, with a word on when to come back


def test_votes_wait_until_storage_is_back_and_all_of_them_count(shell, tmp_path: Path):
    with RedisServer(tmp_path) as redis, server_process("--data", redis.url(), "--log-level", "critical") as served:
        redis.kill()
        process = shell("vote", "cast", "--from", "-", "--url", served.url, env={**SIGNED, "EXTCLI_CHANNEL": CHANNEL})
        process.stdin.write(b"".join(b"U%d,3\n" % user for user in range(100)))
        process.stdin.close()
        assert f"{NOT_NOW}\n" == process.stderr.readline().decode()
        redis.start()

        assert 0 == process.wait(timeout=60)
        assert b"100 sent, 100 accepted, 0 refused" in process.stderr.read()
        assert 100 == len(served.client("backend", channel=CHANNEL).get("vote_logs").json()["result"])


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        (("vote", "cast"), (UNAVAILABLE, UNDEFINED, UNAVAILABLE, http_response("200 OK"))),
        (
            ("vote", "cast"),
            (UNAVAILABLE, UNAVAILABLE, http_response("200 OK", '{"totalVotesPerUser": 1}'), http_response("200 OK")),
        ),
        (("rank", "submit"), (UNAVAILABLE, UNAVAILABLE, http_response("200 OK"))),
    ],
    ids=["a poll without definition", "a poll with one vote for each user", "a ranking"],
)
def test_what_replaces_itself_is_sent_again_and_that_is_told_once(extcli, answering, words, answers):
    result = extcli(*words, "--from", "-", "--url", answering(*answers), input="U1,1\n", env=SIGNED)

    assert 0 == result.exit_code, result.stderr
    assert 1 == result.stderr.count(NOT_NOW)
    assert "1 sent, 1 accepted, 0 refused" in result.stderr


@pytest.mark.parametrize(
    ("words", "input", "definition"),
    [
        (("accumulate", "add", "all"), "1\n2\n3\n", ()),
        (("vote", "cast"), "U1,1\nU1,2\nU1,3\n", (http_response("200 OK", '{"totalVotesPerUser": 9}'),)),
        (("vote", "cast"), "U1,1\nU1,2\nU1,3\n", (http_response("403 Forbidden"),)),
    ],
    ids=["blobs", "votes that add up", "votes of which nobody says whether they add up"],
)
def test_what_adds_up_is_not_sent_twice_and_it_is_said_what_is_to_be_looked_at_by_hand(
    extcli, answering, words, input, definition
):
    url = answering(http_response("200 OK"), UNAVAILABLE, *definition, http_response("200 OK"))

    result = extcli(*words, "--from", "-", "--url", url, input=input, env=SIGNED)

    assert 5 == result.exit_code
    assert (
        "stopped; every line up to 1 is dealt with\n"
        "  sent, not acknowledged, and so done or not: line 2\n"
        "  nothing was sent after line 2: --skip 2 goes on there\n"
        f"extcli: line 2: POST /v1/e/{words[0]} failed in the service: 503 Service Unavailable\n"
    ) in result.stderr


def test_it_is_given_up_after_the_timeout_without_success_and_said_from_where_to_go_on(extcli, answering):
    later = http_response("503 Service Unavailable", retry_after="1")
    url = answering(http_response("200 OK"), later, later)

    result = extcli(
        "rank", "submit", "--from", "-", "--url", url, "--timeout", "1500ms", input="U1,a\n" * 3, env=SIGNED
    )

    assert 5 == result.exit_code
    assert NOT_NOW in result.stderr
    assert "  sent, not acknowledged, and so done or not: line 2\n" in result.stderr
    assert "  to go on, add --skip 1: an answer that comes again replaces itself\n" in result.stderr
    assert "  send the rest when the service is well again" in result.stderr


def test_a_503_that_does_not_say_when_to_come_back_is_final(extcli, answering):
    url = answering(http_response("503 Service Unavailable"), http_response("200 OK"))

    result = extcli("rank", "submit", "--from", "-", "--url", url, input="U1,a\n", env=SIGNED)

    assert 5 == result.exit_code
    assert NOT_NOW not in result.stderr
