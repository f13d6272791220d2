"""The controllable clock (operations.md, Controlling)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from emulator.clock import DAY, END_OF_TIME, MINUTE, WEEK

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


def test_a_new_service_runs_on_system_time(live, stranger):
    record = stranger.get("/_emulator/clock").json()

    assert {"now": record["now"], "offset": 0, "frozen": False} == record


def test_set_changes_the_time_and_the_clock_keeps_running(live, clock):
    record = clock(set=INSTANT)

    assert (False, True) == (record["frozen"], INSTANT <= record["now"] < INSTANT + MINUTE)
    assert live.now() >= record["now"]


def test_set_to_system_leads_back_to_the_time_of_the_system(live, clock):
    live.set(1_700_000_000_000)
    frozen = clock(set="system")
    running = clock(freeze=False, set="system")

    assert (True, False) == (frozen["frozen"], running["frozen"])
    assert 0 == running["offset"]


def test_freeze_stops_the_clock_and_unfreeze_restarts_it_from_there(live, clock):
    clock(set=INSTANT, freeze=True)
    frozen = [live.now() for _ in range(20)]
    record = clock(freeze=False)

    assert [INSTANT] * 20 == frozen
    assert (False, True) == (record["frozen"], INSTANT <= record["now"] < INSTANT + MINUTE)


def test_advance_moves_a_frozen_clock(live, clock):
    clock(set=INSTANT, freeze=True)

    record = clock(advance=250)

    assert (INSTANT + 250, True) == (record["now"], record["frozen"])


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


def test_reset_sets_the_clock_back_to_system_time(live, clock, stranger):
    clock(set=INSTANT, freeze=True)

    stranger.post("/_emulator/reset")

    record = stranger.get("/_emulator/clock").json()
    assert (0, False) == (record["offset"], record["frozen"])


def test_a_move_lists_everything_that_expired_oldest_first(live, clock, write_all, viewer):
    start = live.freeze()
    write_all()
    live.advance(5)
    viewer("U2", channel="888").post("vote?id=round-7", json={"value": 3})

    expired = clock(advance=30 * DAY)["expired"]

    assert [
        ("accumulate", "stars", start + DAY),
        ("channel_config", "777", start + DAY),
        ("extension_state", "my-extension", start + DAY),
        ("rank", "colour", start + DAY),
        ("viewer_state", "U1", start + DAY),
        ("poll", "round-7", start + WEEK),
        ("poll", "round-8", start + WEEK),
        ("poll", "round-7", start + WEEK + 5),
        ("json_store", "level", start + 14 * DAY),
    ] == [(each["kind"], each["id"], each["at"]) for each in expired]


def test_an_expiry_is_listed_once_by_the_move_that_reaches_it(live, clock, viewer):
    start = live.freeze()
    viewer().post("vote", json={"value": 3})

    moves = [clock(set=start + WEEK + ms)["expired"] for ms in (-1, 0, 0, DAY)]

    assert [0, 1, 0, 0] == [len(expired) for expired in moves]
    assert ("poll", "default", start + WEEK) == tuple(moves[1][0][name] for name in ("kind", "id", "at"))


def test_an_expiry_is_listed_even_if_the_id_was_reused_or_deleted_since(live, clock, viewer, broadcaster):
    start = live.freeze()
    for where in ("again", "deleted"):
        viewer().post(f"vote?id={where}", json={"value": 3})
    live.service.clock.set(start + WEEK)
    viewer().post("vote?id=again", json={"value": 4})
    broadcaster.delete("vote?id=deleted")

    expired = clock()["expired"]

    assert {("again", start + WEEK), ("deleted", start + WEEK)} == {(each["id"], each["at"]) for each in expired}
    assert 4 == viewer().get("vote?id=again").json()["sum"]


def test_items_removed_by_housekeeping_are_listed_by_the_next_move(live, clock, viewer):
    start = live.freeze()
    for ms in (0, 1, 2):
        live.service.clock.set(start + ms)
        viewer().post(f"rank?id={ms}", json={"key": "blue"})
    live.service.clock.set(start + DAY + 1)
    live.run(live.service.control.sweep())

    moves = [clock(advance=ms)["expired"] for ms in (0, 1, 1)]

    assert [["0", "1"], ["2"], []] == [[each["id"] for each in expired] for expired in moves]


def test_a_reset_drops_the_items_removed_by_housekeeping(live, clock, viewer):
    start = live.freeze()
    viewer().post("vote", json={"value": 3})
    live.service.clock.set(start + WEEK)
    live.run(live.service.control.sweep())
    live.reset()

    assert [] == clock(advance=WEEK)["expired"]


def test_a_deleted_item_does_not_expire(live, clock, viewer, broadcaster):
    viewer().post("vote", json={"value": 3})
    broadcaster.delete("vote")

    assert [] == clock(advance=WEEK)["expired"]


@pytest.mark.parametrize("swept", [True, False], ids=["after a sweep", "without a sweep"])
def test_setting_the_clock_back_does_not_revive_expired_items(live, clock, write_all, viewer, backend, swept):
    start = live.freeze()
    write_all()
    if swept:
        clock(set=start + 30 * DAY)
    live.service.clock.set(start + 30 * DAY)

    clock(set=start)

    assert 0 == viewer().get("vote?id=round-7").json()["count"]
    assert 404 == viewer().get("vote_config?id=round-8").status_code
    assert 404 == viewer().get("json_store?id=level").status_code
    assert [] == backend.get("vote_logs?id=round-7").json()["result"]
    assert [] == backend.get("rank?id=colour").json()["data"]
    assert {"data": [], "latest": 0} == backend.get("accumulate?id=stars").json()
    assert [{}, {}, {}] == [
        viewer("U1").get(name).json() for name in ("viewer_state", "channel_config", "extension_state")
    ]


def test_one_move_lists_hundreds_of_expiries(live, clock, viewer):
    start = live.freeze()
    caller = live.service.tokens.verify(viewer().headers["Authorization"]).caller

    async def collect() -> None:
        for number in range(600):
            await live.service.buffers.add(caller, "777", f"buffer {number}", number)

    live.run(collect())

    expired = clock(advance=DAY)["expired"]

    assert {(f"buffer {number}", start + DAY) for number in range(600)} == {(due["id"], due["at"]) for due in expired}
    assert 600 == len(expired)
