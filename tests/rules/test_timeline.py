"""The picture of the last five minutes: its bars, and its lanes."""

from __future__ import annotations

import pytest

from emulator.core.callers import Caller, Role
from emulator.core.clock import HOUR, SECOND
from emulator.core.journal import DELIVERY, REQUEST, Entry
from emulator.dashboard.timeline import BAR_MS, BARS, Activity, Mark, timeline_lanes

NOW = 1_700_000_000_000 + 3 * SECOND  # three seconds into a bar
BROADCASTER = Caller("my-extension", Role.BROADCASTER, "777", "777", "U777")


def entry(before: int, number: int = 1, kind: str = REQUEST, *, name: str = "POST /v1/e/vote", ahead: int = 0,
          reason: str = "", fault: str = "", request: bytes = b"") -> Entry:  # fmt: skip
    """Return an entry of so many ms ago, while the service's clock was `ahead`."""
    status = 0 if kind == DELIVERY else 400 if reason else 200
    return Entry(kind, NOW - before + ahead, ahead, "", BROADCASTER, name, "/v1/e/vote?id=boss", status,
                 reason=reason, fault=fault, number=number, request=request)  # fmt: skip


def lanes(*entries: Entry) -> dict[str, list[Mark]]:
    activity = Activity(lambda entry: True)
    for each in entries:
        activity.add(each)
    activity.move_to(NOW)
    return timeline_lanes(activity.bars, {}, {})


@pytest.mark.parametrize(
    ("before", "bars"),
    [(0, [59]), (3_000, [59]), (3_001, [58]), ((BARS - 1) * BAR_MS + 3_000, [0]), ((BARS - 1) * BAR_MS + 3_001, [])],
)
@pytest.mark.parametrize("ahead", [0, HOUR, -HOUR])
def test_a_request_is_in_the_bar_of_its_time_whatever_the_services_clock(before: int, bars: list[int], ahead: int):
    assert bars == [round(each.left * BARS / 100) for each in lanes(entry(before, ahead=ahead))["requests"]]


def test_each_mark_leads_to_what_it_shows():
    found = lanes(
        entry(BAR_MS, 1), entry(BAR_MS, 2), entry(0, 3, reason="Fault"), entry(0, 4, DELIVERY, name="event:round"),
    )  # fmt: skip

    assert [("requests", {"since": 0, "before": 3}, 100.0), ("requests", {"since": 2, "before": 5}, 50.0)] == [
        (each.screen, each.query, each.size) for each in found["requests"]
    ]
    assert [("requests", {"entry": 3})] == [(each.screen, each.query) for each in found["refused"]]
    assert [("requests", {"entry": 4})] == [(each.screen, each.query) for each in found["broadcasts"]]


def test_several_refusals_of_a_bar_are_one_mark_that_leads_to_them():
    (mark,) = lanes(entry(0, 1, reason="Fault"), entry(0, 2), entry(0, 3, reason="Fault"))["refused"]

    assert {"reason": "any", "since": 0, "before": 4} == mark.query
    assert "2 refused: Fault" in mark.title


def test_a_fault_is_shown_from_its_first_hit_to_its_latest():
    (mark,) = lanes(entry(4 * BAR_MS, fault="f1"), entry(2 * BAR_MS, 2, fault="f1"))["control"]

    assert (55, 3) == (round(mark.left * BARS / 100), round(mark.size * BARS / 100))
    assert "f1 · 2 hits" == mark.label


def test_definitions_of_polls_and_moves_of_the_clock_are_shown_at_their_time():
    found = lanes(
        entry(3 * BAR_MS, 1, name="POST /v1/e/vote_config", request=b'{"config": {"endsIn": 40}}'),
        entry(2 * BAR_MS, 2, name="POST /_emulator/clock", ahead=HOUR),
        entry(0, 3, name="POST /v1/e/vote_config", request=b'{"config": {"endsAt": -1}}', ahead=HOUR),
    )["control"]

    assert [("poll boss defined", 56), ("clock: 1 h ahead", 57), ("poll boss closed", 59)] == [
        (each.title, round(each.left * BARS / 100)) for each in found
    ]
