"""`extcli simulate`: a crowd leaves exactly the result that it announced, and each difference is found."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from support.middleware import Middleware
from support.process import wait_until
from support.program import SECRET_BASE64, http_response
from support.service import LiveServer, live_server
from support.simulations import MIX, crowd_of, votes


@pytest.fixture
def crowd(extcli):
    return crowd_of(extcli)


def test_a_crowd_produces_exactly_the_predicted_result(crowd, extcli):
    ran = crowd("--change-mind", "10%", "--seed", "3", "-o", "json", exits=0)

    assert "expected: 30 votes for 0, 15 for 1, 5 for 2; 50 voters, mean 0.5; 55 votes are sent\n" == ran.stderr
    found = ran.json
    named = ("verdict", "simulation", "id", "seed", "viewers")
    assert ["as planned", "crowd", "lunch", 3, 50] == [found[name] for name in named]
    assert [{"name": "0", "planned": 30, "found": 30}] == found["counts"][:1]
    assert {"p50", "p90", "p99", "p999", "max"} == found["latencies"].keys()
    assert {"at", "planned", "answered", "refused", "p50", "p99", "max"} == found["series"][0].keys()
    assert [30, 15, 5] == votes(extcli)["specific"][:3]
    assert (50, 0.5) == (votes(extcli)["count"], votes(extcli)["mean"])


def test_the_votes_of_one_viewer_arrive_in_their_order_over_many_connections(crowd, extcli):
    crowd("--votes", "150", "--connections", "50", "--rate", "100000/s", viewers=3, exits=0)

    assert [2, 1, 0] == votes(extcli)["specific"][:3]


def test_a_poll_with_votes_is_an_error_and_add_compares_the_difference(crowd, extcli):
    extcli("vote", "cast", "lunch", "--value", "5")

    assert "poll lunch has votes already: 1" in crowd(exits=2).stderr
    assert 1 == votes(extcli)["count"]
    assert {"name": "voters", "planned": 50, "found": 50} in crowd("--add", "-o", "json", exits=0).json["counts"]
    assert 51 == votes(extcli)["count"]


def test_late_votes_are_refused_after_the_crowd_has_disabled_the_poll(crowd, extcli):
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--options", "a,b,c")
    ran = crowd("--late", "20%", "-o", "json", exits=0)

    assert "24 votes for 0, 12 for 1, 4 for 2; 40 voters, mean 0.5; 10 late votes are refused" in ran.stderr
    assert (10, 0) == (ran.json["figures"]["late"], ran.json["figures"]["refused"])
    assert [10] == list(ran.json["reasons"].values())
    config = extcli("vote", "config", "lunch", "-o", "json").json
    assert (True, "Which?", ["a", "b", "c"]) == (config["disabled"], config["prompt"], config["options"])


@pytest.mark.slow
def test_late_votes_come_after_the_end_of_the_window(crowd, extcli):
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--ends-in", "2s")
    ran = crowd("--late", "20%", "-o", "json", exits=0)

    assert (10, 40) == (ran.json["figures"]["late"], votes(extcli)["count"])
    assert not extcli("vote", "config", "lunch", "-o", "json").json["disabled"]


def test_a_poll_that_cannot_have_the_result_is_an_error(crowd, extcli):
    late = crowd("--late", "10%", exits=2).stderr
    assert "--late: poll lunch has no definition, so it never closes" in late
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--total-votes", "3", exits=0)
    assert "poll lunch allows several votes per user" in crowd(exits=2).stderr
    assert 0 == votes(extcli)["count"]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("--mix", "64:1"), "--mix: '64' is not a value from 0 to 63"),
        (("--expect", "p98<1ms"), "names: p50 p90 p99 p999 max rate sent answered refused failed"),
        (("--burst", "1s"), "--rate and --burst exclude each other"),
        (("--as", "viewer:U7"), "viewer:U7 (--as) cannot act for many users"),
        (("--token-file", "@token"), "one token cannot act for many users"),
    ],
)
def test_a_wrong_option_is_an_error_before_anything_is_sent(crowd, extcli, file, args, error):
    refused = crowd(*(file("x.y.z") if each == "@token" else each for each in args), exits=2)

    assert error in refused.stderr
    assert 0 == votes(extcli)["count"]


def test_an_expectation_that_is_not_met_exits_7_with_what_was_found(crowd):
    failed = crowd("--expect", "sent==50", "--expect", "sent>50", "--expect", "max<0.001ms", exits=7)

    assert "not met: sent>50 (found 50)" in failed.stderr
    assert "not met: max<0.001ms (found" in failed.stderr
    assert "sent==50" not in failed.stderr
    assert ["verdict", "as planned"] == failed.rows[0]
    assert ["expectation", "sent==50", "met", "50"] in failed.rows
    assert ["count", "0", "30", "30"] in failed.rows


@pytest.mark.slow
def test_an_interrupted_crowd_reports_how_far_it_came(shell, extcli):
    args = ("--viewers", "1000", "--poll", "lunch", *MIX, "--rate", "50/s")
    process = shell("simulate", "crowd", *args)
    wait_until(lambda: votes(extcli)["count"] > 5)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)

    assert 130 == process.returncode
    assert re.search(r"interrupted after \d+ of 1,000 votes; the result is not compared", stderr)


@pytest.mark.slow
def test_churned_connections_are_opened_again(crowd):
    ran = crowd("--churn", "30%/s", "--rate", "50/s", "--connections", "10", "-o", "json", exits=0)

    assert 2 == ran.json["figures"]["reopened"]


def test_a_dry_run_shows_every_request_and_sends_none(crowd, extcli):
    shown = crowd("--dry-run", "-o", "jsonl", viewers=4, exits=0)

    assert 4 == shown.stdout.count('"POST"')
    assert 0 == votes(extcli)["count"]


def test_the_same_seed_sends_the_same_requests(crowd):
    def requests(seed: str) -> str:
        args = ("--votes", "300", "--change-mind", "10%", "--seed", seed, "--dry-run=curl")
        return str(crowd(*args, env={"EXTCLI_SECRET": SECRET_BASE64}).stdout)

    assert requests("7") == requests("7")
    assert requests("7") != requests("8")


def test_a_crowd_answers_a_ranking(extcli):
    ran = extcli("simulate", "rank", "--viewers", "100", "--ranking", "title", "--mix", "apple:70,pear:20,12:30:10",
                 "--change-mind", "10%", "--rate", "2000/s", "-o", "json", exits=0)  # fmt: skip

    assert "expected: 70 answers for apple, 20 for pear, 10 for 12:30; 100 users; 110 answers are sent\n" == ran.stderr
    assert [["apple", "70"], ["pear", "20"], ["12:30", "10"]] == extcli("rank", "get", "title").rows
    again = ("simulate", "rank", "--viewers", "10", "--ranking", "title", "--mix", "apple:1", "--rate", "500/s")
    extcli(*again, exits=2)
    said = extcli(*again, "--add", exits=7).stderr
    assert "the service lost or changed requests, or viewers of seed 0 had answered before: use another --seed" in said


def test_a_crowd_fills_a_buffer(extcli):
    ran = extcli("simulate", "accumulate", "--viewers", "5", "--buffer", "cheers", "--entries", "200",
                 "--rate", "2000/s", "-o", "json", exits=0)  # fmt: skip

    assert [{"name": "entries", "planned": 200, "found": 200}] == ran.json["counts"]
    again = ("simulate", "accumulate", "--viewers", "5", "--buffer", "cheers", "--rate", "2000/s")
    assert 2 == extcli(*again).exit_code
    assert "already has entries of viewers of seed 0" in extcli(*again, "--add").stderr
    assert 0 == extcli(*again, "--add", "--seed", "1").exit_code


# Differences


Handler = Callable[[Any, Any, Any, Any], Awaitable[None]]


@pytest.fixture
def faulty(monkeypatch, environment) -> Iterator[Callable[[Handler], LiveServer]]:
    """Start a service whose votes pass through a handler with a fault, and send the commands there."""
    running = []

    def start(handler: Handler) -> LiveServer:
        class Faulty(Middleware):
            async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
                is_vote = scope["type"] == "http" and (scope["method"], scope["path"]) == ("POST", "/v1/e/vote")
                await (handler(self._app, scope, receive, send) if is_vote else self._app(scope, receive, send))

        context = live_server(wrap=Faulty)
        running.append(context)
        live = context.__enter__()
        monkeypatch.setenv("EXTCLI_URL", live.url)
        return live

    yield start
    for context in running:
        context.__exit__(None, None, None)


def every(number: int, fault: Handler) -> Handler:
    """Return a handler with a fault at every n-th request."""
    count = iter(range(1, 1_000_000))

    async def handle(app: Any, scope: Any, receive: Any, send: Any) -> None:
        if next(count) % number == 0:
            await fault(app, scope, receive, send)
        else:
            await app(scope, receive, send)

    return handle


async def answer(send: Any, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


async def lose(app: Any, scope: Any, receive: Any, send: Any) -> None:
    """Acknowledge a vote, and do not record it."""
    await answer(send, 200, b"{}")


def test_a_service_that_loses_acknowledged_votes_is_found(crowd, faulty):
    faulty(every(10, lose))
    failed = crowd("-o", "json", exits=7)

    assert "differs" == failed.json["verdict"]
    assert {"name": "voters", "planned": 50, "found": 45} in failed.json["counts"]
    details = json.loads(failed.stderr.splitlines()[-1])["error"]["details"]
    assert ["the result contradicts the responses: the service lost or changed requests"] == details


def test_late_votes_that_are_accepted_are_found(crowd, extcli, faulty):
    faulty(every(50, lose))  # the last is late
    extcli("vote", "define", "lunch", "--prompt", "Which?")
    failed = crowd("--late", "2%", "--connections", "1", exits=7)

    assert "late votes accepted: 1" in failed.stderr


def test_a_vote_without_a_response_leaves_the_result_undecided(crowd, extcli):
    extcli("fault", "add", "--match", "POST /v1/e/vote", "--drop", "--times", "2")
    failed = crowd("-o", "json", exits=3)

    assert ("not decided", 2) == (failed.json["verdict"], failed.json["undecided"])
    assert 2 == failed.json["figures"]["failed"]
    assert "is not decided: 2 users are uncertain" in failed.stderr


@pytest.mark.parametrize("kind", ["crowd --mix 0:1", "rank --mix a:1", "accumulate"])
def test_a_result_that_cannot_be_read_is_an_unexpected_response(extcli, answering, kind: str):
    token = http_response("200 OK", '{"token": "e30.e30.x"}')

    for body in ("<html>", "[]", "null", '{"stats": 5, "data": 5}', "[" * 100_000, '{"stats": {}, "data": [1]}'):
        url = answering(token, http_response("200 OK", body))
        said = extcli("simulate", *kind.split(), "--viewers", "2", "--url", url, exits=5).stderr
        assert "returned an unexpected response" in said
