"""Operations that begin at once and are awaited later."""

from __future__ import annotations

import asyncio

import pytest

from emulator.started import Started


async def test_the_first_step_runs_at_once_and_the_rest_when_awaited():
    steps: list[str] = []
    gate = asyncio.get_running_loop().create_future()

    async def work() -> int:
        steps.append("began")
        steps.append(await gate)
        await asyncio.sleep(0)
        return 7

    started = Started(work())
    assert ["began"] == steps
    gate.set_result("went on")

    assert 7 == await started
    assert ["began", "went on"] == steps


async def test_an_operation_that_never_waits_is_done_at_once():
    async def work() -> int:
        return 7

    assert 7 == await Started(work())


async def test_an_error_of_the_first_step_is_raised_at_once():
    async def work() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        Started(work())


@pytest.mark.parametrize("is_done", [True, False])
async def test_a_later_error_is_raised_when_awaited(is_done: bool):
    failing = asyncio.get_running_loop().create_future()

    async def work() -> None:
        await failing

    started = Started(work())
    if is_done:
        failing.set_exception(LookupError())
    else:
        asyncio.get_running_loop().call_soon(failing.set_exception, LookupError())

    with pytest.raises(LookupError):
        await started


async def test_cancelling_the_awaiting_task_reaches_the_operation():
    cancelled = asyncio.get_running_loop().create_future()

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.set_result(True)
            raise

    async def wait() -> None:
        await Started(work())

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()

    assert await cancelled
    with pytest.raises(asyncio.CancelledError):
        await task
