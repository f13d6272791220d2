"""The throttle runs a callback at once, and then at most once per interval."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from emulator.errors import EngineError
from emulator.scheduling.scheduler import Throttle

TIMEOUT = 5.0
"""Seconds."""
LONG = 3600.0
"""An interval that ends only by `flush`."""
SHORT = 0.02


class Callback:
    """Records the keys it starts and finishes with; finishes once `may_finish` is set."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.finished: list[str] = []
        self.may_finish = asyncio.Event()
        self.may_finish.set()
        self.failure: Exception | None = None
        self._changed = asyncio.Event()

    async def __call__(self, key: str) -> None:
        self.started.append(key)
        self._changed.set()
        await self.may_finish.wait()
        self.finished.append(key)
        if self.failure:
            raise self.failure

    async def wait_for(self, *keys: str) -> None:
        """Wait until it has started with exactly these keys, in this order."""
        async with asyncio.timeout(TIMEOUT):
            while len(self.started) < len(keys):
                self._changed.clear()
                await self._changed.wait()
        assert [*keys] == self.started


@pytest.fixture
async def callback() -> Callback:
    return Callback()


@pytest.fixture
async def throttle(callback: Callback) -> AsyncIterator[Throttle[str]]:
    """One whose intervals end only by `flush`."""
    throttle = Throttle(callback, LONG)
    yield throttle
    callback.may_finish.set()
    await throttle.close()


async def settle() -> None:
    """Let the event loop run what is ready."""
    for _ in range(10):
        await asyncio.sleep(0)


async def sleep_for(seconds: float) -> None:
    """Wait until a timer that was set now has fired."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, passed.set)
    await passed.wait()


async def test_the_first_trigger_runs_at_once(throttle: Throttle[str], callback: Callback) -> None:
    throttle.trigger("a")
    await settle()

    assert ["a"] == callback.started


async def test_triggers_in_the_interval_lead_to_one_run_after_it(throttle: Throttle[str], callback: Callback) -> None:
    for _ in range(5):
        throttle.trigger("a")
        await settle()

    assert ["a"] == callback.started

    await throttle.flush()

    assert ["a", "a"] == callback.finished


async def test_nothing_runs_without_a_trigger(throttle: Throttle[str], callback: Callback) -> None:
    throttle.trigger("a")
    for _ in range(3):
        await throttle.flush()

    assert ["a"] == callback.finished


async def test_keys_do_not_wait_for_each_other(throttle: Throttle[str], callback: Callback) -> None:
    for key in ("a", "b", "a", "c", "b"):
        throttle.trigger(key)
    await settle()

    assert ["a", "b", "c"] == callback.started


async def test_intervals_end_by_themselves_and_the_last_trigger_always_runs(callback: Callback) -> None:
    throttle = Throttle(callback, SHORT)
    throttle.trigger("a")
    for count in range(2, 6):
        throttle.trigger("a")
        throttle.trigger("a")
        await callback.wait_for(*["a"] * count)

    await throttle.close()


async def test_after_the_interval_a_trigger_runs_at_once(callback: Callback) -> None:
    throttle = Throttle(callback, SHORT)
    throttle.trigger("a")
    await sleep_for(SHORT * 3)

    throttle.trigger("a")
    await settle()

    assert ["a", "a"] == callback.started
    await throttle.close()


@pytest.mark.parametrize("interval", [0.0, SHORT])
async def test_a_run_longer_than_the_interval_does_not_overlap_the_next(callback: Callback, interval: float) -> None:
    throttle = Throttle(callback, interval)
    callback.may_finish.clear()
    throttle.trigger("a")
    await callback.wait_for("a")
    throttle.trigger("a")
    await sleep_for(SHORT * 3)

    assert ["a"] == callback.started

    callback.may_finish.set()
    await callback.wait_for("a", "a")
    await throttle.close()


async def test_a_trigger_during_a_run_leads_to_another_run(throttle: Throttle[str], callback: Callback) -> None:
    """The run may have read its data before the change that the trigger is about."""
    callback.may_finish.clear()
    throttle.trigger("a")
    await callback.wait_for("a")
    throttle.trigger("a")
    flushing = asyncio.create_task(throttle.flush())
    await settle()

    assert not flushing.done()

    callback.may_finish.set()
    await flushing

    assert ["a", "a"] == callback.finished


async def test_flush_ends_every_interval_and_later_calls_begin_new_ones(
    throttle: Throttle[str], callback: Callback
) -> None:
    for key in ("a", "b", "a", "b"):
        throttle.trigger(key)
    await throttle.flush()

    assert ["a", "b", "a", "b"] == callback.finished

    throttle.trigger("a")
    await settle()

    assert 4 == len(callback.started)


@pytest.mark.parametrize("failure", [EngineError("storage is gone"), RuntimeError("a mistake")])
async def test_a_failing_callback_is_logged_and_stops_nothing(
    throttle: Throttle[str], callback: Callback, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    callback.failure = failure
    for key in ("a", "b", "a"):
        throttle.trigger(key)
    await throttle.flush()

    assert ["a", "b", "a"] == callback.finished
    assert caplog.text.count(str(failure)) == 3


async def test_clear_drops_pending_runs_and_ends_the_interval(throttle: Throttle[str], callback: Callback) -> None:
    throttle.trigger("a")
    throttle.trigger("a")
    await settle()
    throttle.clear()
    await throttle.flush()

    assert ["a"] == callback.finished

    throttle.trigger("a")
    await settle()

    assert ["a", "a"] == callback.started


async def test_close_waits_for_running_callbacks_and_starts_none(callback: Callback) -> None:
    throttle = Throttle(callback, LONG)
    callback.may_finish.clear()
    throttle.trigger("a")
    await callback.wait_for("a")
    throttle.trigger("a")
    closing = asyncio.create_task(throttle.close())
    await settle()

    assert not closing.done()

    throttle.trigger("b")
    callback.may_finish.set()
    await closing
    throttle.trigger("c")
    await settle()

    assert ["a"] == callback.finished == callback.started
