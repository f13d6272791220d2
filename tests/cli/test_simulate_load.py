"""Simulations at length: a pause of the service, every delivery of a broadcast, and production (ruling B7)."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from emulator.core.settings import Limits, Settings
from support.examples import spread
from support.process import ServerProcess, server_process, wait_until
from support.profile_files import write_profiles
from support.program import PROGRAM, SECRET_BASE64
from support.service import live_server
from support.simulations import MIX

pytestmark = pytest.mark.long


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


# `extcli simulate socket`: every delivery of a broadcast is accounted for


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


def test_a_refused_broadcast_is_a_difference_and_one_without_a_response_is_undecided(extcli, audience):
    once = ("fault", "add", "--match", "* /v1/e/broadcast", "--times", "1")
    extcli(*once, "--status", "403")
    refused = audience()
    extcli(*once, "--drop")
    undecided = audience()

    assert (7, 1) == (refused.exit_code, refused.json["figures"]["refused"])
    assert "the result agrees with the responses" in refused.stderr
    assert (3, "not decided") == (undecided.exit_code, undecided.json["verdict"])
    assert "is not decided: 10 deliveries are uncertain" in undecided.stderr
    assert "without a response, or with 5xx, may or may not have been applied" in undecided.stderr


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
    assert "closed with 1013: 1 of the connections" in failed.stderr


# `extcli simulate` against production


@pytest.mark.usefixtures("production_profile")
def test_in_production_the_rate_is_lower_and_listeners_bring_a_token(extcli):
    crowd = ("simulate", "crowd", *MIX, "--yes", "-o", "json")

    assert extcli(*crowd, "--viewers", "20", exits=0).json["figures"]["rate"] < 110
    fast = extcli(*crowd, "--viewers", "50", "--votes", "5000", "--rate", "5000/s", exits=2).stderr
    assert "each viewer would send 100 requests per second" in fast
    for kind in ("page", "game"):
        extcli("simulate", "socket", "--kind", kind, "--connections", "3", "--broadcasts", "2", "--yes", exits=0)


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
