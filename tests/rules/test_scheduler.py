"""Callbacks at an instant of the service's clock, even if it is moved, and callbacks at most once per interval."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from emulator.core.clock import Clock
from emulator.core.errors import EngineError
from emulator.core.scheduler import Callback, Scheduler, Throttle

NOW = 1_700_000_000_000
LONG = 3600.0
"""Seconds; an interval that ends only by `flush`."""
FAILURES = [EngineError("storage is gone"), RuntimeError("a mistake")]


class Recorder:
    """Makes callbacks that record their name when they run."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def __call__(self, name: str) -> Callback:
        async def callback() -> None:
            self.ran.append(name)

        return callback


@pytest.fixture
async def clock() -> Clock:
    """Frozen at `NOW`."""
    clock = Clock(lambda: NOW)
    clock.freeze(True)
    return clock


@pytest.fixture
async def scheduler(clock: Clock) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(clock)
    yield scheduler
    await scheduler.close()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


async def settle() -> None:
    """Let the event loop run what is ready."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_moving_the_clock_runs_what_it_passes_earliest_first(
    scheduler: Scheduler, clock: Clock, recorder: Recorder
) -> None:
    for name, at in (("last", 30), ("first", 10), ("beyond", 31), ("second", 20)):
        scheduler.schedule(name, NOW + at, recorder(name))

    clock.advance(30)
    await scheduler.clock_moved()

    assert ["first", "second", "last"] == recorder.ran


async def test_unfreezing_the_clock_arms_the_timers() -> None:
    clock = Clock()
    scheduler, ran = Scheduler(clock), asyncio.Event()
    clock.freeze(True)

    async def callback() -> None:
        ran.set()

    scheduler.schedule("a", clock.now() + 5, callback)
    clock.freeze(False)
    await scheduler.clock_moved()

    async with asyncio.timeout(5):
        await ran.wait()


async def test_setting_the_clock_back_lengthens_the_wait(
    scheduler: Scheduler, clock: Clock, recorder: Recorder
) -> None:
    scheduler.schedule("a", NOW + 10, recorder("a"))

    ran = []
    for instant in (NOW - 1000, NOW + 9, NOW + 10, NOW, NOW + 10):
        clock.set(instant)
        await scheduler.clock_moved()
        ran.append(list(recorder.ran))

    assert [[], [], ["a"], ["a"], ["a"]] == ran


async def test_a_callback_can_cancel_and_replace_others_that_are_due(
    scheduler: Scheduler, clock: Clock, recorder: Recorder
) -> None:
    async def callback() -> None:
        scheduler.cancel("cancelled")
        scheduler.schedule("moved", NOW + 99, recorder("moved"))

    scheduler.schedule("first", NOW + 1, callback)
    for name in ("cancelled", "moved"):
        scheduler.schedule(name, NOW + 2, recorder(name))

    ran = []
    for step in (2, 97):
        clock.advance(step)
        await scheduler.clock_moved()
        await settle()
        ran.append(list(recorder.ran))

    assert [[], ["moved"]] == ran


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failing_callback_is_logged_and_stops_no_other(
    scheduler: Scheduler, clock: Clock, recorder: Recorder, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise failure

    for number, callback in enumerate((fail, recorder("a"), fail, recorder("b"))):
        scheduler.schedule(number, NOW + number + 1, callback)
    clock.advance(10)
    await scheduler.clock_moved()

    assert ["a", "b"] == recorder.ran
    assert 2 == caplog.text.count(str(failure))


async def test_a_trigger_during_a_run_leads_to_one_more_run() -> None:
    """The run may have read its data before the change that the trigger is about."""
    finished, may_finish = [], asyncio.Event()

    async def callback(key: str) -> None:
        await may_finish.wait()
        finished.append(key)

    throttle = Throttle(callback, LONG)
    for _ in range(5):
        throttle.trigger("a")
        await settle()
    flushing = asyncio.create_task(throttle.flush())
    await settle()
    may_finish.set()
    await flushing

    assert ["a", "a"] == finished
    await throttle.close()


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failing_notification_is_logged_and_stops_nothing(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    started = []

    async def callback(key: str) -> None:
        started.append(key)
        raise failure

    throttle = Throttle(callback, LONG)
    for key in ("a", "b", "a"):
        throttle.trigger(key)
    await throttle.flush()

    assert ["a", "b", "a"] == started
    assert 3 == caplog.text.count(str(failure))
    await throttle.close()


async def test_close_waits_for_running_callbacks_and_starts_none(scheduler: Scheduler, recorder: Recorder) -> None:
    started, may_finish = asyncio.Event(), asyncio.Event()

    async def callback(*_: str) -> None:
        started.set()
        await may_finish.wait()
        recorder.ran.append("started")

    throttle = Throttle(callback, LONG)
    scheduler.schedule("started", NOW, callback)
    throttle.trigger("a")
    await started.wait()
    scheduler.schedule("due", NOW, recorder("due"))
    throttle.trigger("a")
    closing = asyncio.gather(scheduler.close(), throttle.close())
    await settle()
    assert not closing.done()

    may_finish.set()
    await closing

    assert ["started", "started"] == recorder.ran
