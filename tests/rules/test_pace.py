"""Something is done at once, and then only after a rest, however often it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from emulator.errors import EngineError
from emulator.scheduling.throttle import Throttle

WITHIN = 5.0
"""Seconds in which what is waited for must have happened."""
LONG = 3600.0
"""A rest that does not end by itself."""
SHORT = 0.02


class Work:
    """What is done: each key is noted as it begins and ends when it may."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.failure: Exception | None = None
        self._news = asyncio.Event()

    async def __call__(self, key: str) -> None:
        self.begun.append(key)
        self._news.set()
        await self.may_end.wait()
        self.ended.append(key)
        if self.failure:
            raise self.failure

    async def has_begun(self, *keys: str) -> None:
        """Wait until it was done for these, in this order."""
        async with asyncio.timeout(WITHIN):
            while len(self.begun) < len(keys):
                self._news.clear()
                await self._news.wait()
        assert [*keys] == self.begun


@pytest.fixture
async def work() -> Work:
    return Work()


@pytest.fixture
async def pace(work: Work) -> AsyncIterator[Throttle[str]]:
    """With a rest that ends by `hurry` only."""
    pace = Throttle(work, LONG)
    yield pace
    work.may_end.set()
    await pace.close()


async def turns() -> None:
    """Let happen what is about to."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_first_time_is_at_once(pace: Throttle[str], work: Work) -> None:
    pace.ask("a")
    await turns()

    assert ["a"] == work.begun


async def test_what_is_asked_for_in_the_rest_waits_and_is_done_once(pace: Throttle[str], work: Work) -> None:
    for _ in range(5):
        pace.ask("a")
        await turns()

    assert ["a"] == work.begun

    await pace.hurry()

    assert ["a", "a"] == work.ended


async def test_what_is_not_asked_for_again_is_not_done_again(pace: Throttle[str], work: Work) -> None:
    pace.ask("a")
    for _ in range(3):
        await pace.hurry()

    assert ["a"] == work.ended


async def test_keys_do_not_wait_for_each_other(pace: Throttle[str], work: Work) -> None:
    for key in ("a", "b", "a", "c", "b"):
        pace.ask(key)
    await turns()

    assert ["a", "b", "c"] == work.begun


async def test_rests_end_by_themselves_and_the_last_ask_is_never_lost(work: Work) -> None:
    pace = Throttle(work, SHORT)
    pace.ask("a")
    for count in range(2, 6):
        pace.ask("a")
        pace.ask("a")
        await work.has_begun(*["a"] * count)

    await pace.close()


async def test_after_the_rest_it_is_at_once_again(work: Work) -> None:
    pace = Throttle(work, SHORT)
    rested = asyncio.Event()
    pace.ask("a")
    asyncio.get_running_loop().call_later(SHORT * 3, rested.set)
    await rested.wait()

    pace.ask("a")
    await turns()

    assert ["a", "a"] == work.begun
    await pace.close()


@pytest.mark.parametrize("rest", [0.0, SHORT])
async def test_what_takes_longer_than_the_rest_is_not_begun_again_beside_itself(work: Work, rest: float) -> None:
    pace = Throttle(work, rest)
    rested = asyncio.Event()
    work.may_end.clear()
    pace.ask("a")
    await work.has_begun("a")
    pace.ask("a")
    asyncio.get_running_loop().call_later(SHORT * 3, rested.set)
    await rested.wait()

    assert ["a"] == work.begun

    work.may_end.set()
    await work.has_begun("a", "a")
    await pace.close()


async def test_what_is_asked_for_while_it_is_being_done_is_done_again(pace: Throttle[str], work: Work) -> None:
    """It may have read what the ask is about before that was so."""
    work.may_end.clear()
    pace.ask("a")
    await work.has_begun("a")
    pace.ask("a")
    hurrying = asyncio.create_task(pace.hurry())
    await turns()

    assert not hurrying.done()

    work.may_end.set()
    await hurrying

    assert ["a", "a"] == work.ended


async def test_hurrying_ends_the_rests_of_all_keys_and_begins_new_ones(pace: Throttle[str], work: Work) -> None:
    for key in ("a", "b", "a", "b"):
        pace.ask(key)
    await pace.hurry()

    assert ["a", "b", "a", "b"] == work.ended

    pace.ask("a")
    await turns()

    assert 4 == len(work.begun)


@pytest.mark.parametrize("failure", [EngineError("storage is gone"), RuntimeError("a mistake")])
async def test_a_failure_is_logged_and_stops_nothing(
    pace: Throttle[str], work: Work, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    work.failure = failure
    for key in ("a", "b", "a"):
        pace.ask(key)
    await pace.hurry()

    assert ["a", "b", "a"] == work.ended
    assert caplog.text.count(str(failure)) == 3


async def test_what_is_forgotten_is_not_done_and_the_rest_is_over(pace: Throttle[str], work: Work) -> None:
    pace.ask("a")
    pace.ask("a")
    await turns()
    pace.forget()
    await pace.hurry()

    assert ["a"] == work.ended

    pace.ask("a")
    await turns()

    assert ["a", "a"] == work.begun


async def test_closing_waits_for_what_is_being_done_and_does_nothing_more(work: Work) -> None:
    pace = Throttle(work, LONG)
    work.may_end.clear()
    pace.ask("a")
    await work.has_begun("a")
    pace.ask("a")
    closing = asyncio.create_task(pace.close())
    await turns()

    assert not closing.done()

    pace.ask("b")
    work.may_end.set()
    await closing
    pace.ask("c")
    await turns()

    assert ["a"] == work.ended == work.begun
