"""The scheduler runs callbacks at an instant of the service's clock, even if the clock is moved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from emulator.clock import Clock
from emulator.errors import EngineError
from emulator.scheduling.scheduler import Callback, Scheduler

NOW = 1_700_000_000_000
TIMEOUT = 5.0
"""Seconds."""


class Recorder:
    """Makes callbacks that record their name, and the time by the clock, when they run."""

    def __init__(self, clock: Clock) -> None:
        self.ran: list[str] = []
        self.at: list[int] = []
        self._clock = clock
        self._changed = asyncio.Event()

    def __call__(self, name: str) -> Callback:
        async def callback() -> None:
            self.ran.append(name)
            self.at.append(self._clock.now())
            self._changed.set()

        return callback

    async def wait_for(self, *names: str) -> None:
        """Wait until exactly these have run, in this order."""
        async with asyncio.timeout(TIMEOUT):
            while len(self.ran) < len(names):
                self._changed.clear()
                await self._changed.wait()
        assert [*names] == self.ran


class MachineTime:
    """A machine's time that advances by `step` ms at each reading."""

    def __init__(self, step: int = 0) -> None:
        self.now = NOW
        self._step = step

    def __call__(self) -> int:
        self.now += self._step
        return self.now


@pytest.fixture
async def clock() -> Clock:
    """Frozen at `NOW`."""
    clock = Clock(MachineTime())
    clock.freeze(True)
    return clock


@pytest.fixture
async def scheduler(clock: Clock) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(clock)
    yield scheduler
    await scheduler.close()


@pytest.fixture
async def recorder(clock: Clock) -> Recorder:
    return Recorder(clock)


async def settle() -> None:
    """Let the event loop run what is ready."""
    for _ in range(10):
        await asyncio.sleep(0)


async def sleep_for(seconds: float) -> None:
    """Wait until a timer that was set now has fired."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, passed.set)
    await passed.wait()


@pytest.mark.slow
async def test_a_callback_runs_by_itself_and_not_before_its_instant() -> None:
    clock = Clock(MachineTime(step=1))  # does not run in step with the loop's timers
    scheduler, recorder = Scheduler(clock), Recorder(clock)

    scheduler.schedule("a", NOW + 50, recorder("a"))
    await recorder.wait_for("a")

    assert recorder.at[0] >= NOW + 50


async def test_a_callback_that_is_already_due_runs_at_once(
    scheduler: Scheduler, clock: Clock, recorder: Recorder
) -> None:
    scheduler.schedule("past", NOW - 1000, recorder("past"))
    scheduler.schedule("now", NOW, recorder("now"))

    await recorder.wait_for("past", "now")

    clock.freeze(False)
    scheduler.schedule("running", NOW, recorder("running"))
    await recorder.wait_for("past", "now", "running")


async def test_moving_the_clock_runs_what_it_passes_earliest_first(
    scheduler: Scheduler, clock: Clock, recorder: Recorder
) -> None:
    for name, at in (("last", 30), ("first", 10), ("beyond", 31), ("second", 20)):
        scheduler.schedule(name, NOW + at, recorder(name))

    clock.advance(30)
    await scheduler.clock_moved()

    assert ["first", "second", "last"] == recorder.ran

    clock.advance(1)
    await scheduler.clock_moved()

    assert "beyond" == recorder.ran[-1]


async def test_a_callback_runs_only_once(scheduler: Scheduler, clock: Clock, recorder: Recorder) -> None:
    scheduler.schedule("a", NOW + 10, recorder("a"))
    clock.advance(10)

    await asyncio.gather(scheduler.clock_moved(), scheduler.clock_moved())
    clock.freeze(False)
    await scheduler.clock_moved()
    await settle()

    assert ["a"] == recorder.ran


async def test_a_frozen_clock_runs_nothing(scheduler: Scheduler, recorder: Recorder) -> None:
    scheduler.schedule("a", NOW + 1, recorder("a"))
    await sleep_for(0.02)

    assert [] == recorder.ran


async def test_unfreezing_the_clock_arms_the_timers() -> None:
    clock = Clock(MachineTime(step=1))
    scheduler, recorder = Scheduler(clock), Recorder(clock)
    clock.freeze(True)
    scheduler.schedule("a", clock.now() + 5, recorder("a"))

    clock.freeze(False)
    await scheduler.clock_moved()

    await recorder.wait_for("a")


async def test_freezing_the_clock_disarms_the_timers() -> None:
    clock = Clock(MachineTime(step=1))
    scheduler, recorder = Scheduler(clock), Recorder(clock)
    scheduler.schedule("a", clock.now() + 20, recorder("a"))

    clock.freeze(True)
    await scheduler.clock_moved()
    await sleep_for(0.05)

    assert [] == recorder.ran


async def test_setting_the_clock_back_lengthens_the_wait(
    scheduler: Scheduler, clock: Clock, recorder: Recorder
) -> None:
    scheduler.schedule("a", NOW + 10, recorder("a"))

    clock.set(NOW - 1000)
    await scheduler.clock_moved()
    clock.advance(1009)
    await scheduler.clock_moved()

    assert [] == recorder.ran

    clock.advance(1)
    await scheduler.clock_moved()

    assert ["a"] == recorder.ran


async def test_setting_the_clock_back_repeats_nothing(scheduler: Scheduler, clock: Clock, recorder: Recorder) -> None:
    scheduler.schedule("a", NOW + 10, recorder("a"))
    for instant in (NOW + 10, NOW, NOW + 10):
        clock.set(instant)
        await scheduler.clock_moved()

    assert ["a"] == recorder.ran


async def test_a_later_callback_of_a_key_replaces_the_earlier(
    scheduler: Scheduler, clock: Clock, recorder: Recorder
) -> None:
    scheduler.schedule("a", NOW + 10, recorder("replaced"))
    scheduler.schedule("a", NOW + 20, recorder("kept"))
    scheduler.schedule("b", NOW + 15, recorder("another"))

    clock.advance(60)
    await scheduler.clock_moved()
    await settle()

    assert ["another", "kept"] == recorder.ran


async def test_a_cancelled_callback_does_not_run_and_its_key_is_free(
    scheduler: Scheduler, clock: Clock, recorder: Recorder
) -> None:
    scheduler.schedule("a", NOW + 10, recorder("a"))
    scheduler.schedule("now", NOW, recorder("now"))
    for name in ("a", "now", "never scheduled"):
        scheduler.cancel(name)
    clock.advance(10)
    await scheduler.clock_moved()
    await settle()

    assert [] == recorder.ran

    scheduler.schedule("a", NOW + 11, recorder("again"))
    clock.advance(1)
    await scheduler.clock_moved()

    assert ["again"] == recorder.ran


async def test_a_callback_can_cancel_and_replace_others_that_are_due(
    scheduler: Scheduler, clock: Clock, recorder: Recorder
) -> None:
    async def callback() -> None:
        scheduler.cancel("cancelled")
        scheduler.schedule("moved", NOW + 99, recorder("moved"))

    scheduler.schedule("first", NOW + 1, callback)
    for name in ("cancelled", "moved"):
        scheduler.schedule(name, NOW + 2, recorder(name))
    clock.advance(2)
    await scheduler.clock_moved()
    await settle()

    assert [] == recorder.ran

    clock.advance(97)
    await scheduler.clock_moved()

    assert ["moved"] == recorder.ran


async def test_a_callback_can_reschedule_itself(scheduler: Scheduler, clock: Clock, recorder: Recorder) -> None:
    async def callback() -> None:
        await recorder(str(clock.now() - NOW))()
        scheduler.schedule("a", clock.now() + 10, callback)

    scheduler.schedule("a", NOW + 10, callback)
    for _ in range(3):
        clock.advance(10)
        await scheduler.clock_moved()

    assert ["10", "20", "30"] == recorder.ran


@pytest.mark.parametrize("failure", [EngineError("storage is gone"), RuntimeError("a mistake")])
async def test_a_failing_callback_is_logged_and_stops_no_other(
    scheduler: Scheduler, clock: Clock, recorder: Recorder, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise failure

    for number, callback in enumerate((fail, recorder("a"), fail, recorder("b"))):
        scheduler.schedule(number, NOW + number + 1, callback)
    clock.advance(10)
    await scheduler.clock_moved()
    scheduler.schedule("by itself", NOW, fail)
    scheduler.schedule("c", NOW, recorder("c"))

    await recorder.wait_for("a", "b", "c")

    assert caplog.text.count(str(failure)) == 3


async def test_clock_moved_waits_for_running_callbacks(scheduler: Scheduler, recorder: Recorder) -> None:
    started, may_finish = asyncio.Event(), asyncio.Event()

    async def callback() -> None:
        started.set()
        await may_finish.wait()
        await recorder("a")()

    scheduler.schedule("a", NOW, callback)
    await started.wait()
    moving = asyncio.create_task(scheduler.clock_moved())
    await settle()

    assert not moving.done()

    may_finish.set()
    await moving

    assert ["a"] == recorder.ran


async def test_clear_cancels_every_callback(scheduler: Scheduler, clock: Clock, recorder: Recorder) -> None:
    scheduler.schedule("a", NOW, recorder("a"))
    scheduler.schedule("b", NOW + 10, recorder("b"))

    scheduler.clear()
    clock.advance(10)
    await scheduler.clock_moved()
    await settle()

    assert [] == recorder.ran

    scheduler.schedule("a", NOW, recorder("again"))
    await recorder.wait_for("again")


async def test_close_waits_for_running_callbacks_and_starts_none(clock: Clock, recorder: Recorder) -> None:
    scheduler = Scheduler(clock)
    started, may_finish = asyncio.Event(), asyncio.Event()

    async def callback() -> None:
        started.set()
        await may_finish.wait()
        await recorder("started")()

    scheduler.schedule("started", NOW, callback)
    await started.wait()
    scheduler.schedule("due", NOW, recorder("due"))
    closing = asyncio.create_task(scheduler.close())
    await settle()

    assert not closing.done()

    may_finish.set()
    await closing

    assert ["started"] == recorder.ran
