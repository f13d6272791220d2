"""Simulations at length: hundreds of thousands of votes, and a pause or the end of the service.

`SIMULATION_RATE=4000 pytest tests/cli/test_simulate_load.py -s` sends 200,000 votes of 5,000 viewers at this rate, and
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

import pytest

from support.process import ServerProcess, server_process, wait_until
from support.program import PROGRAM

pytestmark = pytest.mark.long

FULL_RATE = int(os.environ.get("SIMULATION_RATE", 0))
VIEWERS, VOTES, RATE = (5_000, 200_000, FULL_RATE) if FULL_RATE else (200, 2_000, 500)
MIX = ("--mix", "0:60,1:30,2:10")


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
def test_a_crowd_says_what_was_sent_if_the_service_is_gone_at_the_end(served: ServerProcess):
    crowd = started(served, "--viewers", "100", "--rate", "50/s", "--timeout", "2s")
    wait_until(lambda: stats(served)["count"] > 5)
    served.stop(signal.SIGKILL)
    _, stderr = crowd.communicate(timeout=60)

    assert 3 == crowd.returncode
    assert re.search(rb"votes: \d+ sent, \d+ answered, 0 refused, \d+ failed; the result cannot be read:\n", stderr)
