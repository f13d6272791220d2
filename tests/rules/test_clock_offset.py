"""The clock: its offset and pauses (operations.md, Controlling); and the record of changes after a reset."""

from __future__ import annotations

from itertools import count

from emulator.core.changes import Change, Changes
from emulator.core.clock import HOUR, Clock
from emulator.core.keys import Key

INSTANT = 2_000_000_000_000


def test_the_offset_of_a_running_clock_is_constant():
    clock = Clock(count(INSTANT).__next__)

    clock.freeze(False)
    clock.advance(HOUR)

    assert [HOUR] * 5 == [clock.offset for _ in range(5)]


def test_a_paused_clock_shows_one_instant_and_catches_up_afterwards():
    machine = [INSTANT]
    clock = Clock(lambda: machine[0])

    with clock.hold_still() as paused_at:
        machine[0] += 5
        assert (INSTANT, INSTANT, False) == (paused_at, clock.now(), clock.frozen)

    assert (INSTANT + 5, 0) == (clock.now(), clock.offset)


def test_no_mark_from_before_a_reset_is_kept_and_marks_go_on_rising():
    changes = Changes(count(100).__next__)
    before = changes.mark
    changes.note(Change(Key("poll", "ext", "lunch", "777"), "vote"))
    last = changes.mark

    changes.forget()

    assert (False, []) == (changes.has_all_since(before, "poll"), changes.latest("poll", 3))
    assert changes.mark > last
