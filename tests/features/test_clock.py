"""The controllable clock (operations.md, Controlling)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from emulator.core.clock import DAY, END_OF_TIME, MINUTE

INSTANT = 2_000_000_000_000


@pytest.fixture
def clock(stranger: httpx.Client) -> Callable[..., dict[str, Any]]:
    """`clock(advance=5)` moves the service's clock; `clock()` only lists what expired. Returns the response."""
    return lambda **move: stranger.post("/_emulator/clock", json=move).raise_for_status().json()


@pytest.fixture
def write_all(viewer, broadcaster, backend) -> Callable[[], None]:
    """Writes one of each item that expires in the sandbox."""

    def write() -> None:
        viewer("U1").post("vote?id=round-7", json={"value": 3})
        viewer("U1").post("rank?id=colour", json={"key": "blue"})
        viewer("U1").post("accumulate?id=stars", json=5)
        viewer("U1").post("viewer_state", json={"a": 1})
        broadcaster.post("channel_config", json={"a": 1})
        broadcaster.post("json_store?id=level", json={"a": 1})
        broadcaster.post("vote_config", json={"id": "round-8", "config": {}})
        backend.post("extension_state", json={"a": 1})

    return write


def test_a_running_clock_can_be_set_and_frozen(live, clock, stranger):
    assert (0, False) == tuple(stranger.get("/_emulator/clock").json()[name] for name in ("offset", "frozen"))

    record = clock(set=INSTANT)
    assert (False, True) == (record["frozen"], INSTANT <= record["now"] <= live.now() < INSTANT + MINUTE)
    clock(set=INSTANT, freeze=True)
    assert [INSTANT] * 20 == [live.now() for _ in range(20)]
    assert (INSTANT + 250, True) == tuple(clock(advance=250)[name] for name in ("now", "frozen"))
    assert not clock(freeze=False)["frozen"]


def test_set_to_system_leads_back_to_the_time_of_the_system(live, clock):
    live.set(1_700_000_000_000)
    frozen = clock(set="system")
    running = clock(freeze=False, set="system")

    assert (True, False) == (frozen["frozen"], running["frozen"])
    assert 0 == running["offset"]


def test_advance_moves_the_offset_of_a_running_clock_exactly(live, clock):
    offsets = [clock(advance=1_000)["offset"] for _ in range(20)]

    assert list(range(1_000, 21_000, 1_000)) == offsets


def test_set_advance_and_freeze_in_one_call_stop_the_clock_at_that_instant(live, clock):
    records = [clock(freeze=freeze, advance=5, set=INSTANT) for freeze in [False, True] * 100]

    assert {(INSTANT + 5, True)} == {(record["now"], record["frozen"]) for record in records[1::2]}


def test_concurrent_moves_all_count(live):
    frozen_at = live.freeze()

    with ThreadPoolExecutor(8) as operators:
        list(operators.map(lambda _: live.advance(1_000), range(40)))

    assert frozen_at + 40_000 == live.now()


@pytest.mark.parametrize("move", [{}, {"set": None, "advance": None, "freeze": None}, {"advance": 0}, {"tomorrow": 1}])
def test_an_empty_move_does_not_change_the_clock(live, stranger, move):
    stranger.post("/_emulator/clock", json={"set": INSTANT, "freeze": True})

    record = stranger.post("/_emulator/clock", json=move).json()

    assert (INSTANT, True, []) == (record["now"], record["frozen"], record["expired"])


@pytest.mark.parametrize(
    "body", ['{"set":"soon"}', '{"set":"--5"}', '{"set":253402300799999,"advance":1}', '{"set":5,"advance":-1}']
)
def test_an_invalid_move_is_refused_and_changes_nothing(live, stranger, body):
    stranger.post("/_emulator/clock", json={"set": INSTANT, "freeze": True})

    answer = stranger.post("/_emulator/clock", content=body)

    assert 400 == answer.status_code
    assert {"now": INSTANT, "frozen": True} == {
        name: value for name, value in stranger.get("/_emulator/clock").json().items() if name != "offset"
    }


@pytest.mark.parametrize("instant", [0, END_OF_TIME - 1])
def test_the_service_works_at_the_first_and_the_last_instant(live, viewer, broadcaster, admin, write_all, instant):
    live.set(instant)

    write_all()

    assert 3 == viewer("U2").get("vote?id=round-7").json()["sum"]
    assert [instant] == [vote["timestamp"] for vote in admin.get("vote_logs?id=round-7").json()["result"]]
    assert instant == broadcaster.get("accumulate?id=stars").json()["latest"]


def test_the_expiry_of_the_directory_of_users_is_not_reported(live, stranger, viewer):
    viewer("5", opaque="UOPAQUE").post("vote", json={"value": 1}).raise_for_status()

    upcoming = stranger.get("/_emulator/clock/next").json()["next"]

    assert ["poll"] == [each["kind"] for each in upcoming]
    assert ["poll"] == [each["kind"] for each in live.advance(91 * DAY)]
