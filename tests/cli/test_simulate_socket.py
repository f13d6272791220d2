"""`extcli simulate socket`: every delivery of a broadcast is accounted for."""

from __future__ import annotations

import re
import signal
import threading
from typing import Any

import httpx
import pytest

from support.examples import spread
from support.journal import entries_of
from support.process import wait_until

pytestmark = pytest.mark.long


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


def test_a_broadcast_without_an_answer_leaves_the_result_undecided(extcli, audience):
    extcli("fault", "add", "--match", "* /v1/e/broadcast", "--drop", "--times", "1")
    failed = audience()

    assert 3 == failed.exit_code
    assert "not decided" == failed.json["verdict"]
    assert "is not decided: 10 deliveries are undecided" in failed.stderr
    assert "without an answer, or with 5xx, may or may not have been applied" in failed.stderr


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
