"""The clock: its offset, and pauses (operations.md, Controlling)."""

from __future__ import annotations

from itertools import count

from emulator.core.clock import HOUR, Clock

INSTANT = 2_000_000_000_000


def test_the_offset_of_a_running_clock_is_constant():
    clock = Clock(count(INSTANT).__next__)

    clock.freeze(False)
    clock.advance(HOUR)

    assert [HOUR] * 5 == [clock.offset for _ in range(5)]


def test_a_paused_clock_shows_one_instant_and_catches_up_afterwards():
    machine = [INSTANT]
    clock = Clock(lambda: machine[0])

    with clock.paused() as paused_at:
        machine[0] += 5
        assert (INSTANT, INSTANT, False) == (paused_at, clock.now(), clock.frozen)

    assert (INSTANT + 5, 0) == (clock.now(), clock.offset)
