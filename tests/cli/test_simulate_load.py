"""Simulations at length: hundreds of thousands of votes, and a pause or the end of the service (ruling B7).

`SIMULATION_RATE=500 pytest tests/cli/test_simulate_load.py -s` sends 200,000 votes of 5,000 viewers at this rate, and
prints the figures.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from emulator.core.config.settings import Limits, Settings
from support.examples import spread
from support.journal import entries_of
from support.process import ServerProcess, server_process, wait_until
from support.profile_files import write_profiles
from support.program import PROGRAM, SECRET_BASE64
from support.service import live_server
from support.simulations import MIX, crowd_of, votes

pytestmark = pytest.mark.long

FULL_RATE = int(os.environ.get("SIMULATION_RATE", 0))
VIEWERS, VOTES, RATE = (5_000, 200_000, FULL_RATE) if FULL_RATE else (200, 2_000, 500)


@pytest.fixture
def served() -> Iterator[ServerProcess]:
    with server_process("--journal", "0") as served:
        yield served


def started(served: ServerProcess, *args: str) -> subprocess.Popen[bytes]:
    """Start a crowd on poll `lunch`."""
    command = [PROGRAM, "--url", served.url, "simulate", "crowd", "--poll", "lunch", *MIX, *args, "-o", "json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(crowd: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Wait for a crowd, which must succeed, and return what it found."""
    stdout, stderr = crowd.communicate(timeout=600)
    assert 0 == crowd.returncode, stderr
    return dict(json.loads(stdout))


def stats(served: ServerProcess) -> dict[str, Any]:
    with served.client("viewer", user="1", channel="1001") as client:
        return dict(client.get("vote", params={"id": "lunch"}).json()["stats"])


def test_statistics_and_rate_are_as_planned(served: ServerProcess):
    numbers = ("--viewers", str(VIEWERS), "--votes", str(VOTES), "--rate", f"{RATE}/s", "--seed", "7")
    found = ended(started(served, *numbers, "--change-mind", "5%"))

    assert "as planned" == found["verdict"]
    result = stats(served)
    assert [VIEWERS * share // 100 for share in (60, 30, 10)] == result["specific"][:3]
    assert (VIEWERS, VIEWERS // 2, 0.5) == (result["count"], result["sum"], result["mean"])
    assert VOTES == found["figures"]["answered"]
    if FULL_RATE:  # a loaded machine may not reach any rate
        assert pytest.approx(RATE, rel=0.02) == found["figures"]["rate"]
        sys.stdout.write(f"\n{found['figures']}\n{found['latencies']}\n")


@pytest.mark.long
def test_a_pause_of_the_service_counts_in_the_latency_of_all_that_was_due(served: ServerProcess):
    """Of 1,500 requests, 150 are due in the pause. With 5 connections, a generator that waits would send 5 of them."""
    crowd = started(served, "--viewers", "1500", "--rate", "500/s", "--connections", "5")
    wait_until(lambda: stats(served)["count"] > 100)
    served.process.send_signal(signal.SIGSTOP)
    threading.Event().wait(0.3)
    served.process.send_signal(signal.SIGCONT)
    found = ended(crowd)

    assert found["latencies"]["max"] >= 295
    assert found["latencies"]["p99"] >= 250
    slow = [point for point in found["series"] if point["max"] and point["max"] >= 50]
    assert sum(point["planned"] for point in slow) * found["series"][1]["at"] >= 120


@pytest.mark.long
def test_a_crowd_reports_the_sent_votes_if_the_service_is_gone_at_the_end(served: ServerProcess):
    crowd = started(served, "--viewers", "100", "--rate", "50/s", "--timeout", "2s")
    wait_until(lambda: stats(served)["count"] > 5)
    served.stop(signal.SIGKILL)
    _, stderr = crowd.communicate(timeout=60)

    assert 3 == crowd.returncode
    assert re.search(rb"votes: \d+ sent, \d+ answered, 0 refused, \d+ failed; the result could not be read:\n", stderr)


# `extcli simulate socket`: every delivery of a broadcast is accounted for


@pytest.mark.parametrize("kind", ["page", "game"])
def test_every_connection_receives_every_broadcast(extcli, kind):
    ran = extcli("simulate", "socket", "--connections", "20", "--broadcasts", "10", "--rate", "100/s",
                 "--kind", kind, "-o", "json", exits=0)  # fmt: skip

    assert [{"name": "deliveries", "planned": 200, "found": 200}] == ran.json["counts"]
    assert ran.json["latencies"]["max"] > 0


@pytest.fixture
def audience(extcli):
    """Let 10 pages listen to 5 broadcasts."""

    def run(*args: str):
        own = ("--connections", "10", "--broadcasts", "5", "--rate", "100/s", "--timeout", "2s", "-o", "json")
        return extcli("simulate", "socket", *own, *args)

    return run


@pytest.mark.parametrize("kind", spread(["page", "game"], 2))
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


def test_a_broadcast_without_a_response_leaves_the_result_undecided(extcli, audience):
    extcli("fault", "add", "--match", "* /v1/e/broadcast", "--drop", "--times", "1")
    failed = audience()

    assert 3 == failed.exit_code
    assert "not decided" == failed.json["verdict"]
    assert "is not decided: 10 deliveries are undecided" in failed.stderr
    assert "without a response, or with 5xx, may or may not have been applied" in failed.stderr


def test_an_interrupted_audience_reports_how_far_it_came(shell, live):
    process = shell("simulate", "socket", "--connections", "2", "--broadcasts", "1000", "--rate", "20/s")
    wait_until(lambda: entries_of(live, path="broadcast", status="2xx"))
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)

    assert 130 == process.returncode
    assert re.search(rb"interrupted after \d+ of 1,000 broadcasts; the result is not compared", stderr)


@pytest.mark.parametrize("kind", ["page", "game"])
def test_connections_that_are_opened_again_miss_nothing(audience, kind):
    ran = audience("--kind", kind, "--churn", "1000%/s", "--broadcasts", "6")

    assert 0 == ran.exit_code
    assert 5 == ran.json["figures"]["reopened"]
    assert [60] == [each["found"] for each in ran.json["counts"]]


def test_connections_that_the_service_closes_are_found(audience, live):
    def listening() -> list[dict[str, Any]]:
        """Return the sockets if each has received a broadcast, after the greeting and a reply."""
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


# `extcli simulate` against production


@pytest.fixture
def crowd(extcli):
    return crowd_of(extcli)


@pytest.mark.usefixtures("production_profile")
class TestProduction:
    def test_a_crowd_needs_a_yes(self, crowd, extcli):
        refused = crowd(exits=2)

        assert "poll lunch gets 50 votes of users who do not exist" in refused.stderr
        assert 0 == votes(extcli)["count"]
        assert 0 == crowd("--yes").exit_code
        assert 50 == votes(extcli)["count"]

    def test_the_default_rate_is_lower(self, extcli):
        ran = extcli("simulate", "crowd", "--viewers", "20", *MIX, "--yes", "-o", "json", exits=0)

        assert ran.json["figures"]["rate"] < 110

    def test_a_viewer_stays_below_the_rate_of_a_caller(self, crowd):
        refused = crowd("--yes", "--votes", "5000", "--rate", "5000/s", exits=2)

        assert "each viewer would send 100 requests per second" in refused.stderr

    @pytest.mark.parametrize("kind", ["page", "game"])
    def test_listeners_bring_a_token(self, extcli, kind):
        ran = extcli("simulate", "socket", "--kind", kind, "--connections", "3", "--broadcasts", "2", "--yes")

        assert (0, "") == (ran.exit_code, ran.stderr if ran.exit_code else "")


def test_production_waits_as_retry_after_says(extcli, monkeypatch, environment):
    """The result is read when the rate allows it: at one request per second, that is a second after the last vote."""
    with live_server(Settings(limits=Limits(client_rate=1))) as live:
        monkeypatch.setenv("EXTCLI_SECRET", SECRET_BASE64)
        monkeypatch.setenv("EXTCLI_URL", live.url)
        write_profiles(live={"url": live.url, "production": True})
        ran = extcli("simulate", "crowd", "--viewers", "7", *MIX, "--yes", "-o", "json", "--rate", "300/s")

    assert 0 == ran.exit_code
    assert 0 < ran.json["figures"]["repeated"] == ran.json["figures"]["refused"]
    assert ran.json["latencies"]["max"] >= 1000
