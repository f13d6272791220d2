"""Doing something for a key at once, and then again only after a rest, however often it is asked for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from emulator.errors import EngineError

K = TypeVar("K")
_log = logging.getLogger("emulator")


class Throttle(Generic[K]):
    """`act` for each key at most once per `rest` seconds of real time, and never twice at the same time.

    What is asked for meanwhile is done after it.
    """

    def __init__(self, act: Callable[[K], Awaitable[None]], rest: float) -> None:
        self._act = act
        self._rest = rest
        self._resting: dict[K, asyncio.TimerHandle] = {}
        self._asked: set[K] = set()
        self._acting: dict[K, asyncio.Task[None]] = {}
        self._closed = False

    def ask(self, key: K) -> None:
        """Have it done, now or after the rest."""
        if self._closed:
            return
        if key in self._resting or key in self._acting:
            self._asked.add(key)
            return
        loop = asyncio.get_running_loop()
        self._resting[key] = loop.call_later(self._rest, self._rested, key)
        self._acting[key] = task = loop.create_task(self._do(key))
        task.add_done_callback(lambda _: self._acted(key))

    async def hurry(self) -> None:
        """End all rests; return when what was asked for is done."""
        for key in list(self._resting):
            self._resting[key].cancel()
            self._rested(key)
        await self._settled()

    def forget(self) -> None:
        """Do nothing of what is still to do."""
        for timer in self._resting.values():
            timer.cancel()
        self._resting.clear()
        self._asked.clear()

    async def close(self) -> None:
        """Do nothing more, whatever is asked for, and wait for what is being done."""
        self._closed = True
        self.forget()
        await self._settled()

    async def _settled(self) -> None:
        while self._acting:  # whose end may begin what was asked for meanwhile
            await asyncio.gather(*self._acting.values())

    def _rested(self, key: K) -> None:
        del self._resting[key]
        self._go_on(key)

    def _acted(self, key: K) -> None:
        del self._acting[key]
        self._go_on(key)

    def _go_on(self, key: K) -> None:
        if key in self._asked and key not in self._resting and key not in self._acting:
            self._asked.discard(key)
            self.ask(key)

    async def _do(self, key: K) -> None:
        try:
            await self._act(key)
        except EngineError as error:
            _log.warning("subscribers could not be told: %s", error)
        except Exception:
            _log.exception("unexpected failure in telling subscribers")
