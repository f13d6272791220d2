"""`extcli simulate`: the result is the one announced, and every difference is found."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest

from emulator.config.settings import Limits, Settings
from emulator.server.middleware import Middleware
from support.process import wait_until
from support.profile_files import write_profiles
from support.program import SECRET_BASE64
from support.service import LiveServer, live_server

MIX = ("--mix", "0:60,1:30,2:10")
Handler = Callable[[Any, Any, Any, Any], Awaitable[None]]


@pytest.fixture
def crowd(extcli):
    """Run a crowd of 50 on poll `lunch`, without waiting."""

    def run(*args: str, viewers: int = 50, **settings: Any):
        own = ("--viewers", str(viewers), "--poll", "lunch", *MIX, "--rate", "2000/s")
        return extcli("simulate", "crowd", *own, *args, **settings)

    return run


def votes(extcli) -> dict[str, Any]:
    return extcli("vote", "get", "lunch", "-o", "json").json["stats"]


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
    """Return a handler with a fault at every so many requests."""
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


async def stay_silent(app: Any, scope: Any, receive: Any, send: Any) -> None:
    """Neither record nor answer a vote."""
    await asyncio.Event().wait()


async def record_silently(app: Any, scope: Any, receive: Any, send: Any) -> None:
    """Record a vote, and do not answer."""

    async def swallow(message: Any) -> None:
        pass

    await app(scope, receive, swallow)
    await asyncio.Event().wait()


def test_a_crowd_leaves_exactly_the_result_that_it_announced(crowd, extcli):
    ran = crowd("--change-mind", "10%", "-o", "json")

    assert 0 == ran.exit_code
    assert "will: 30 votes for 0, 15 for 1, 5 for 2; 50 voters, mean 0.5; 55 votes are sent\n" == ran.stderr
    assert "as planned" == ran.json["verdict"]
    assert [30, 15, 5] == votes(extcli)["specific"][:3]
    assert (50, 0.5) == (votes(extcli)["count"], votes(extcli)["mean"])


def test_viewers_vote_again_and_the_last_vote_counts(crowd, extcli):
    ran = crowd("--votes", "400", "-o", "json")

    assert 0 == ran.exit_code
    assert 400 == ran.json["figures"]["answered"]
    assert [30, 15, 5] == votes(extcli)["specific"][:3]
    assert 50 == votes(extcli)["count"]


def test_the_votes_of_one_viewer_arrive_in_their_order_over_many_connections(crowd, extcli):
    ran = crowd("--votes", "600", "--connections", "50", "--rate", "100000/s", viewers=3)

    assert 0 == ran.exit_code
    assert [2, 1, 0] == votes(extcli)["specific"][:3]


def test_plain_output_has_a_line_for_each_figure(crowd):
    rows = crowd("--expect", "failed==0").rows

    assert ["verdict", "as planned"] == rows[0]
    assert ["count", "0", "30", "30"] in rows
    assert ["count", "voters", "50", "50"] in rows
    assert ["sent", "50"] in rows
    assert ["expectation", "failed==0", "met", "0"] == rows[-1]
    assert {"p50", "p90", "p99", "p999", "max", "rate"} < {row[0] for row in rows}


def test_json_has_everything(crowd):
    found = crowd("-o", "json", "--seed", "3").json

    assert ("crowd", "lunch", 3, 50) == tuple(found[name] for name in ("simulation", "id", "seed", "viewers"))
    assert [{"name": "0", "planned": 30, "found": 30}] == found["counts"][:1]
    assert {"p50", "p90", "p99", "p999", "max"} == found["latencies"].keys()
    assert {"at", "planned", "answered", "refused", "p50", "p99", "max"} == found["series"][0].keys()


def test_progress_is_for_terminals_only(crowd):
    assert "will: " == crowd().stderr[:6]
    assert 1 == crowd("--add", "--seed", "2").stderr.count("\n")


def test_a_poll_with_votes_is_an_error(crowd, extcli):
    extcli("vote", "cast", "lunch", "--value", "1")
    refused = crowd()

    assert 2 == refused.exit_code
    assert "poll lunch has votes already: 1" in refused.stderr
    assert 1 == votes(extcli)["count"]


def test_add_compares_the_difference(crowd, extcli):
    extcli("vote", "cast", "lunch", "--value", "5")
    ran = crowd("--add", "-o", "json")

    assert 0 == ran.exit_code
    assert 51 == votes(extcli)["count"]
    assert {"name": "voters", "planned": 50, "found": 50} in ran.json["counts"]


def test_add_needs_viewers_that_have_not_voted(crowd):
    crowd("--seed", "4")
    refused = crowd("--add", "--seed", "4")

    assert 2 == refused.exit_code
    assert "poll lunch has votes of seed 4 already" in refused.stderr


def test_late_votes_are_refused_after_the_crowd_has_disabled_the_poll(crowd, extcli):
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--options", "a,b,c")
    ran = crowd("--late", "20%", "-o", "json")

    assert 0 == ran.exit_code
    assert "24 votes for 0, 12 for 1, 4 for 2; 40 voters, mean 0.5; 10 late votes are refused" in ran.stderr
    assert (10, 0) == (ran.json["figures"]["late"], ran.json["figures"]["refused"])
    assert [10] == list(ran.json["reasons"].values())
    config = extcli("vote", "config", "lunch", "-o", "json").json
    assert (True, "Which?", ["a", "b", "c"]) == (config["disabled"], config["prompt"], config["options"])


@pytest.mark.slow
def test_late_votes_come_after_the_end_of_the_window(crowd, extcli):
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--ends-in", "2s")
    ran = crowd("--late", "20%", "-o", "json")

    assert 0 == ran.exit_code
    assert (10, 40) == (ran.json["figures"]["late"], votes(extcli)["count"])
    assert not extcli("vote", "config", "lunch", "-o", "json").json["disabled"]


@pytest.mark.parametrize(
    ("definition", "args", "error"),
    [
        ((), ("--late", "10%"), "--late: poll lunch has no definition, so it never closes"),
        (("--disabled",), (), "poll lunch is disabled, so it refuses every vote"),
        (("--starts-in", "1h"), (), "poll lunch is pending, so it refuses every vote"),
        (("--total-votes", "3"), (), "votes of poll lunch add up"),
        (("--ends-in", "1h"), ("--rate", "1/min"), "poll lunch closes in"),
    ],
)
def test_a_poll_that_cannot_have_the_result_is_an_error(crowd, extcli, definition, args, error):
    if definition:
        assert 0 == extcli("vote", "define", "lunch", "--prompt", "Which?", *definition).exit_code
    refused = crowd(*args, viewers=100)

    assert 2 == refused.exit_code
    assert error in refused.stderr
    assert 0 == votes(extcli)["count"]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("--mix", "64:1"), "--mix: '64' is not a value from 0 to 63"),
        (("--mix", "-1:1"), "--mix: '-1' is not a value from 0 to 63"),
        (("--mix", "0"), "--mix: '0' is not CHOICE:WEIGHT"),
        (("--late", "200%"), "--late: '200%' is not a share"),
        (("--expect", "p98<1ms"), "names: p50 p90 p99 p999 max rate sent answered refused failed"),
        (("--burst", "1s"), "--rate and --burst exclude each other"),
        (("--votes", "10"), "--votes: 10 are too few for 50 viewers"),
        (("--as", "broadcaster"), "is no crowd"),
        (("--as", "viewer:U7"), "is no crowd"),
        (("--churn", "5"), "--churn: '5' is not a share per time"),
    ],
)
def test_a_wrong_option_is_an_error_before_anything_is_sent(crowd, extcli, args, error):
    refused = crowd(*args)

    assert 2 == refused.exit_code
    assert error in refused.stderr
    assert 0 == votes(extcli)["count"]


def test_one_token_is_no_crowd(crowd):
    refused = crowd(env={"EXTCLI_TOKEN": "x.y.z"})

    assert 2 == refused.exit_code
    assert "one token cannot act for a crowd" in refused.stderr


def test_a_service_that_is_away_is_unreachable(crowd):
    assert 3 == crowd("--url", "http://127.0.0.1:9").exit_code


def test_an_expectation_that_is_not_met_exits_7_with_what_was_found(crowd):
    failed = crowd("--expect", "sent==50", "--expect", "sent>50", "--expect", "max<0.001ms")

    assert 7 == failed.exit_code
    assert "not met: sent>50 (found 50)" in failed.stderr
    assert "not met: max<0.001ms (found" in failed.stderr
    assert "sent==50" not in failed.stderr
    assert ["verdict", "as planned"] == failed.rows[0]


def test_a_service_that_loses_acknowledged_votes_is_found(crowd, faulty):
    faulty(every(10, lose))
    failed = crowd("-o", "json")

    assert 7 == failed.exit_code
    assert "differs" == failed.json["verdict"]
    assert {"name": "voters", "planned": 50, "found": 45} in failed.json["counts"]
    details = json.loads(failed.stderr.splitlines()[-1])["error"]["details"]
    assert "the service acknowledged something else: it lost or changed requests" == details[-1]
    assert "planned  found" in details[0]


def test_refused_votes_are_told_from_lost_ones(crowd, faulty):
    async def refuse(app: Any, scope: Any, receive: Any, send: Any) -> None:
        await answer(send, 403, b'{"reason":"no"}')

    faulty(every(10, refuse))
    failed = crowd("--expect", "refused==0")

    assert 7 == failed.exit_code
    assert "it is what the service acknowledged: requests were refused or failed" in failed.stderr
    assert "not met: refused==0 (found 5)" in failed.stderr
    assert ["refused", "5"] in failed.rows


def test_late_votes_that_are_accepted_are_found(crowd, extcli, faulty):
    faulty(every(50, lose))  # the last is late
    extcli("vote", "define", "lunch", "--prompt", "Which?")
    failed = crowd("--late", "2%", "--connections", "1")

    assert 7 == failed.exit_code
    assert "1 late vote was accepted" in failed.stderr


def test_a_vote_without_an_answer_leaves_the_result_undecided(crowd, faulty):
    faulty(every(25, stay_silent))
    failed = crowd("--timeout", "1s", "-o", "json")

    assert 3 == failed.exit_code
    assert ("not decided", 2) == (failed.json["verdict"], failed.json["undecided"])
    assert 2 == failed.json["figures"]["failed"]
    assert "is not decided: 2 users are undecided" in failed.stderr


def test_a_vote_without_an_answer_that_was_recorded_is_as_planned(crowd, faulty):
    faulty(every(25, record_silently))
    ran = crowd("--timeout", "1s", "-o", "json")

    assert 0 == ran.exit_code
    assert ("as planned", 2) == (ran.json["verdict"], ran.json["undecided"])


def test_a_refused_vote_comes_again_when_retry_after_says_so(crowd, faulty):
    async def later(app: Any, scope: Any, receive: Any, send: Any) -> None:
        await answer(send, 503, b"{}", (b"retry-after", b"0"))

    faulty(every(10, later))
    ran = crowd("-o", "json")

    assert 0 == ran.exit_code
    assert (55, 5, 5) == tuple(ran.json["figures"][name] for name in ("sent", "repeated", "refused"))


def test_self_signed_tokens_follow_the_clock_of_the_service(crowd, extcli):
    extcli("clock", "advance", "1d")

    assert 0 == crowd(env={"EXTCLI_SECRET": SECRET_BASE64}).exit_code


def test_an_interrupted_crowd_says_how_far_it_came(shell, extcli):
    args = ("--viewers", "1000", "--poll", "lunch", *MIX, "--rate", "50/s")
    process = shell("simulate", "crowd", *args)
    wait_until(lambda: votes(extcli)["count"] > 5)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)

    assert 130 == process.returncode
    assert re.search(rb"interrupted after \d+ of 1,000 votes; the result is not compared", stderr)


def test_churned_connections_are_opened_again(crowd):
    ran = crowd("--churn", "30%/s", "--rate", "50/s", "--connections", "10", "-o", "json")

    assert 0 == ran.exit_code
    assert 2 == ran.json["figures"]["reopened"]


def test_a_dry_run_shows_every_request_and_sends_none(crowd, extcli):
    shown = crowd("--dry-run", "-o", "jsonl", viewers=4)

    assert 0 == shown.exit_code
    assert 4 == shown.stdout.count('"POST"')
    assert 0 == votes(extcli)["count"]


def test_the_same_seed_sends_the_same_requests(crowd):
    def requests(seed: str) -> str:
        args = ("--votes", "300", "--change-mind", "10%", "--seed", seed, "--dry-run=curl")
        return str(crowd(*args, env={"EXTCLI_SECRET": SECRET_BASE64}).stdout)

    assert requests("7") == requests("7")
    assert requests("7") != requests("8")


@pytest.mark.usefixtures("production_profile")
class TestProduction:
    def test_a_crowd_needs_a_yes(self, crowd, extcli):
        refused = crowd()

        assert 2 == refused.exit_code
        assert "poll lunch gets 50 votes of users who do not exist" in refused.stderr
        assert 0 == votes(extcli)["count"]
        assert 0 == crowd("--yes").exit_code
        assert 50 == votes(extcli)["count"]

    def test_the_default_rate_is_lower(self, extcli):
        ran = extcli("simulate", "crowd", "--viewers", "20", *MIX, "--yes", "-o", "json")

        assert 0 == ran.exit_code
        assert ran.json["figures"]["rate"] < 110

    def test_a_viewer_stays_below_the_rate_of_a_caller(self, crowd):
        refused = crowd("--yes", "--votes", "5000", "--rate", "5000/s")

        assert 2 == refused.exit_code
        assert "each viewer would send 100 requests per second" in refused.stderr


@pytest.mark.slow
def test_production_waits_as_retry_after_says(extcli, monkeypatch, environment):
    with live_server(Settings(limits=Limits(client_rate=10))) as live:
        monkeypatch.setenv("EXTCLI_SECRET", SECRET_BASE64)
        monkeypatch.setenv("EXTCLI_URL", live.url)
        write_profiles(live={"url": live.url, "production": True})
        ran = extcli("simulate", "crowd", "--viewers", "60", *MIX, "--yes", "-o", "json", "--rate", "500/s")

    assert 0 == ran.exit_code
    assert 0 < ran.json["figures"]["repeated"] == ran.json["figures"]["refused"]
    assert ran.json["latencies"]["max"] >= 1000


def test_a_crowd_answers_a_ranking(extcli):
    ran = extcli("simulate", "rank", "--viewers", "100", "--ranking", "title", "--mix", "apple:70,pear:20,12:30:10",
                 "--change-mind", "10%", "--rate", "2000/s", "-o", "json")  # fmt: skip

    assert 0 == ran.exit_code
    assert "will: 70 answers for apple, 20 for pear, 10 for 12:30; 100 users; 110 answers are sent\n" == ran.stderr
    assert [["apple", "70"], ["pear", "20"], ["12:30", "10"]] == extcli("rank", "get", "title").rows
    assert 2 == extcli("simulate", "rank", "--viewers", "1", "--ranking", "title", "--mix", "x:1").exit_code


def test_a_crowd_fills_a_buffer(extcli):
    ran = extcli("simulate", "accumulate", "--viewers", "5", "--buffer", "cheers", "--entries", "200",
                 "--rate", "2000/s", "-o", "json")  # fmt: skip

    assert 0 == ran.exit_code
    assert [{"name": "entries", "planned": 200, "found": 200}] == ran.json["counts"]
    again = ("simulate", "accumulate", "--viewers", "5", "--buffer", "cheers", "--rate", "2000/s")
    assert 2 == extcli(*again).exit_code
    assert "has entries of seed 0 already" in extcli(*again, "--add").stderr
    assert 0 == extcli(*again, "--add", "--seed", "1").exit_code


@pytest.mark.parametrize("kind", ["page", "game"])
def test_every_connection_receives_every_broadcast(extcli, kind):
    ran = extcli("simulate", "socket", "--connections", "20", "--broadcasts", "10", "--rate", "100/s",
                 "--kind", kind, "-o", "json")  # fmt: skip

    assert 0 == ran.exit_code
    assert [{"name": "deliveries", "planned": 200, "found": 200}] == ran.json["counts"]
    assert ran.json["latencies"]["max"] > 0


@pytest.fixture
def audience(extcli):
    """Let 10 pages listen to 5 broadcasts."""

    def run(*args: str):
        own = ("--connections", "10", "--broadcasts", "5", "--rate", "100/s", "--timeout", "2s", "-o", "json")
        return extcli("simulate", "socket", *own, *args)

    return run


@pytest.mark.parametrize("kind", ["page", "game"])
@pytest.mark.parametrize(
    ("effect", "counts"),
    [
        ("--lose", {"deliveries": 40}),
        ("--double", {"deliveries": 50, "doubled": 10}),
        ("--reorder", {"deliveries": 50, "out of order": 10}),
    ],
)
def test_a_broadcast_that_is_lost_doubled_or_reordered_is_found(extcli, audience, kind, effect, counts):
    extcli("fault", "add", "--event", "simulation", effect, "--times", "1")
    failed = audience("--kind", kind)

    assert 7 == failed.exit_code
    assert counts == {each["name"]: each["found"] for each in failed.json["counts"]}


def test_a_refused_broadcast_is_a_difference(extcli, audience):
    extcli("fault", "add", "--match", "* /v1/e/broadcast", "--status", "403", "--times", "1")
    failed = audience()

    assert 7 == failed.exit_code
    assert "it is what the service acknowledged" in failed.stderr
    assert (1, 4) == (failed.json["figures"]["refused"], failed.json["figures"]["answered"] - 1)


def test_a_broadcast_without_an_answer_leaves_the_result_undecided(extcli, audience):
    extcli("fault", "add", "--match", "* /v1/e/broadcast", "--drop", "--times", "1")
    failed = audience()

    assert 3 == failed.exit_code
    assert "not decided" == failed.json["verdict"]


@pytest.mark.parametrize("kind", ["page", "game"])
def test_connections_that_are_opened_again_miss_nothing(audience, kind):
    ran = audience("--kind", kind, "--churn", "1000%/s", "--broadcasts", "6")

    assert 0 == ran.exit_code
    assert 5 == ran.json["figures"]["reopened"]
    assert [60] == [each["found"] for each in ran.json["counts"]]


def test_connections_that_the_service_closes_are_found(audience, live):
    def listening() -> list[dict[str, Any]]:
        """Return the sockets if each has received a broadcast, after the greeting and the answer to its subscription."""
        found = httpx.get(f"{live.url}/_emulator/sockets").json()["sockets"]
        return found if len(found) == 10 and all(each["frames"] > 2 for each in found) else []

    def close_first() -> None:
        number = wait_until(listening)[0]["number"]
        httpx.post(f"{live.url}/_emulator/sockets/close", json={"socket": number, "code": 1013}).raise_for_status()

    closing = threading.Thread(target=close_first)
    closing.start()
    failed = audience("--broadcasts", "200")
    closing.join()

    assert 7 == failed.exit_code
    assert "1 connection was closed with 1013" in failed.stderr
