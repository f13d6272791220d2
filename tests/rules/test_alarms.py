"""What is due at an instant of the service's time is done then, wherever the clock is moved to meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from emulator.clock import Clock
from emulator.errors import EngineError
from emulator.scheduling.scheduler import Scheduler

NOW = 1_700_000_000_000
WITHIN = 5.0
"""Seconds in which what is waited for must have happened."""

Act = Callable[[], Awaitable[None]]


class Bell:
    """Notes who rang, and when that was by the clock."""

    def __init__(self, clock: Clock) -> None:
        self.rung: list[str] = []
        self.at: list[int] = []
        self._clock = clock
        self._news = asyncio.Event()

    def __call__(self, name: str) -> Act:
        async def ring() -> None:
            self.rung.append(name)
            self.at.append(self._clock.now())
            self._news.set()

        return ring

    async def has(self, *names: str) -> None:
        """Wait until these have rung, in this order."""
        async with asyncio.timeout(WITHIN):
            while len(self.rung) < len(names):
                self._news.clear()
                await self._news.wait()
        assert [*names] == self.rung


class Reading:
    """A machine's time that moves by `step` at each look."""

    def __init__(self, step: int = 0) -> None:
        self.now = NOW
        self._step = step

    def __call__(self) -> int:
        self.now += self._step
        return self.now


@pytest.fixture
async def clock() -> Clock:
    """Stands at `NOW`."""
    clock = Clock(Reading())
    clock.freeze(True)
    return clock


@pytest.fixture
async def alarms(clock: Clock) -> AsyncIterator[Scheduler]:
    alarms = Scheduler(clock)
    yield alarms
    await alarms.close()


@pytest.fixture
async def bell(clock: Clock) -> Bell:
    return Bell(clock)


async def turns() -> None:
    """Let happen what is about to."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_while_the_clock_runs_it_is_done_by_itself_and_not_before_its_instant() -> None:
    clock = Clock(Reading(step=1))  # whose seconds are not those of the loop's timers
    alarms, bell = Scheduler(clock), Bell(clock)

    alarms.set("a", NOW + 50, bell("a"))
    await bell.has("a")

    assert bell.at[0] >= NOW + 50


async def test_what_is_due_already_is_done_at_once(alarms: Scheduler, clock: Clock, bell: Bell) -> None:
    alarms.set("past", NOW - 1000, bell("past"))
    alarms.set("now", NOW, bell("now"))

    await bell.has("past", "now")

    clock.freeze(False)
    alarms.set("running", NOW, bell("running"))
    await bell.has("past", "now", "running")


async def test_a_move_of_the_clock_does_what_it_passes_earliest_first(
    alarms: Scheduler, clock: Clock, bell: Bell
) -> None:
    for name, at in (("last", 30), ("first", 10), ("beyond", 31), ("second", 20)):
        alarms.set(name, NOW + at, bell(name))

    clock.advance(30)
    await alarms.clock_moved()

    assert ["first", "second", "last"] == bell.rung

    clock.advance(1)
    await alarms.clock_moved()

    assert "beyond" == bell.rung[-1]


async def test_nothing_is_done_twice(alarms: Scheduler, clock: Clock, bell: Bell) -> None:
    alarms.set("a", NOW + 10, bell("a"))
    clock.advance(10)

    await asyncio.gather(alarms.clock_moved(), alarms.clock_moved())
    clock.freeze(False)
    await alarms.clock_moved()
    await turns()

    assert ["a"] == bell.rung


async def test_a_clock_that_stands_does_nothing_by_itself(alarms: Scheduler, clock: Clock, bell: Bell) -> None:
    loop = asyncio.get_running_loop()
    passed = asyncio.Event()
    alarms.set("a", NOW + 1, bell("a"))
    loop.call_later(0.02, passed.set)  # later than any timer of the alarm would be

    await passed.wait()

    assert [] == bell.rung


async def test_a_clock_that_runs_again_does_it_by_itself_again() -> None:
    clock = Clock(Reading(step=1))
    alarms, bell = Scheduler(clock), Bell(clock)
    clock.freeze(True)
    alarms.set("a", clock.now() + 5, bell("a"))

    clock.freeze(False)
    await alarms.clock_moved()

    await bell.has("a")


async def test_a_clock_that_is_stopped_takes_the_timers_with_it() -> None:
    clock = Clock(Reading(step=1))
    alarms, bell = Scheduler(clock), Bell(clock)
    alarms.set("a", clock.now() + 20, bell("a"))
    passed = asyncio.Event()

    clock.freeze(True)
    await alarms.clock_moved()
    asyncio.get_running_loop().call_later(0.05, passed.set)
    await passed.wait()

    assert [] == bell.rung


async def test_a_clock_that_is_moved_back_makes_the_wait_longer(alarms: Scheduler, clock: Clock, bell: Bell) -> None:
    alarms.set("a", NOW + 10, bell("a"))

    clock.set(NOW - 1000)
    await alarms.clock_moved()
    clock.advance(1009)
    await alarms.clock_moved()

    assert [] == bell.rung

    clock.advance(1)
    await alarms.clock_moved()

    assert ["a"] == bell.rung


async def test_what_was_done_is_not_done_again_by_a_clock_that_is_moved_back(
    alarms: Scheduler, clock: Clock, bell: Bell
) -> None:
    alarms.set("a", NOW + 10, bell("a"))
    for instant in (NOW + 10, NOW, NOW + 10):
        clock.set(instant)
        await alarms.clock_moved()

    assert ["a"] == bell.rung


async def test_of_two_alarms_under_one_key_the_later_set_one_counts(
    alarms: Scheduler, clock: Clock, bell: Bell
) -> None:
    alarms.set("a", NOW + 10, bell("replaced"))
    alarms.set("a", NOW + 20, bell("kept"))
    alarms.set("b", NOW + 15, bell("another"))

    clock.advance(60)
    await alarms.clock_moved()
    await turns()

    assert ["another", "kept"] == bell.rung


async def test_what_is_cancelled_is_not_done_and_may_be_set_again(alarms: Scheduler, clock: Clock, bell: Bell) -> None:
    alarms.set("a", NOW + 10, bell("a"))
    alarms.set("now", NOW, bell("now"))
    for name in ("a", "now", "never set"):
        alarms.cancel(name)
    clock.advance(10)
    await alarms.clock_moved()
    await turns()

    assert [] == bell.rung

    alarms.set("a", NOW + 11, bell("again"))
    clock.advance(1)
    await alarms.clock_moved()

    assert ["again"] == bell.rung


async def test_what_one_cancels_or_replaces_is_not_done_behind_it(alarms: Scheduler, clock: Clock, bell: Bell) -> None:
    async def act() -> None:
        alarms.cancel("cancelled")
        alarms.set("moved", NOW + 99, bell("moved"))

    alarms.set("first", NOW + 1, act)
    for name in ("cancelled", "moved"):
        alarms.set(name, NOW + 2, bell(name))
    clock.advance(2)
    await alarms.clock_moved()
    await turns()

    assert [] == bell.rung

    clock.advance(97)
    await alarms.clock_moved()

    assert ["moved"] == bell.rung


async def test_one_may_set_itself_anew(alarms: Scheduler, clock: Clock, bell: Bell) -> None:
    async def act() -> None:
        await bell(str(clock.now() - NOW))()
        alarms.set("a", clock.now() + 10, act)

    alarms.set("a", NOW + 10, act)
    for _ in range(3):
        clock.advance(10)
        await alarms.clock_moved()

    assert ["10", "20", "30"] == bell.rung


@pytest.mark.parametrize("failure", [EngineError("storage is gone"), RuntimeError("a mistake")])
async def test_one_that_fails_is_logged_and_stops_no_other(
    alarms: Scheduler, clock: Clock, bell: Bell, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise failure

    for number, act in enumerate((fail, bell("a"), fail, bell("b"))):
        alarms.set(number, NOW + number + 1, act)
    clock.advance(10)
    await alarms.clock_moved()
    alarms.set("by itself", NOW, fail)
    alarms.set("c", NOW, bell("c"))

    await bell.has("a", "b", "c")

    assert caplog.text.count(str(failure)) == 3


async def test_a_move_returns_when_what_a_timer_had_begun_is_done_too(
    alarms: Scheduler, clock: Clock, bell: Bell
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def act() -> None:
        begun.set()
        await may_end.wait()
        await bell("a")()

    alarms.set("a", NOW, act)
    await begun.wait()
    moving = asyncio.create_task(alarms.clock_moved())
    await turns()

    assert not moving.done()

    may_end.set()
    await moving

    assert ["a"] == bell.rung


async def test_what_is_forgotten_is_not_done(alarms: Scheduler, clock: Clock, bell: Bell) -> None:
    alarms.set("a", NOW, bell("a"))
    alarms.set("b", NOW + 10, bell("b"))

    alarms.forget()
    clock.advance(10)
    await alarms.clock_moved()
    await turns()

    assert [] == bell.rung

    alarms.set("a", NOW, bell("again"))
    await bell.has("again")


async def test_closing_waits_for_what_is_being_done_and_does_nothing_more(clock: Clock, bell: Bell) -> None:
    alarms = Scheduler(clock)
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def act() -> None:
        begun.set()
        await may_end.wait()
        await bell("begun")()

    alarms.set("begun", NOW, act)
    await begun.wait()
    alarms.set("due", NOW, bell("due"))
    closing = asyncio.create_task(alarms.close())
    await turns()

    assert not closing.done()

    may_end.set()
    await closing

    assert ["begun"] == bell.rung
