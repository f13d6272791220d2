"""Storage outages: detects their start and end, and logs the end once, even on an idle node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from emulator.clock import monotonic
from emulator.errors import EngineError

_CHECK_INTERVAL: Final = 1.0
"""Seconds between two checks during an outage."""
_log = logging.getLogger("emulator")


class Outages:
    """An outage starts when a use of storage fails and ends when a use or a check succeeds."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._started = asyncio.Event()

    @property
    def is_on(self) -> bool:
        return self._since is not None

    def note(self, *, ok: bool) -> None:
        if not ok:
            self._since = monotonic() if self._since is None else self._since
            self._started.set()
        elif self._since is not None:
            _log.info("storage answers again after %.1f s", monotonic() - self._since)
            self._since = None
            self._started.clear()

    async def watch(self, check: Callable[[], Awaitable[None]]) -> None:
        """During each outage, call `check` until it succeeds. Runs forever."""
        while True:
            await self._started.wait()
            await asyncio.sleep(_CHECK_INTERVAL)
            try:
                await check()
            except EngineError:
                continue
            self.note(ok=True)
