"""Whether storage answers. That it does again is said once, also on a node that nobody asks anything."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from emulator.clock import monotonic
from emulator.errors import EngineError

_LOOK_EVERY: Final = 1.0
"""Seconds between two looks during an outage. At other times nobody looks: requests tell."""
_log = logging.getLogger("emulator")


class Outages:
    """Begin with a failure that somebody ran into, and end with the first use or look that succeeds."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._begun = asyncio.Event()

    @property
    def is_on(self) -> bool:
        """Whether storage failed when it was last used."""
        return self._since is not None

    def note(self, *, answers: bool) -> None:
        """Take note of one use of storage."""
        if not answers:
            self._since = monotonic() if self._since is None else self._since
            self._begun.set()
        elif self._since is not None:
            _log.info("storage answers again after %.1f s", monotonic() - self._since)
            self._since = None
            self._begun.clear()

    async def watch(self, check: Callable[[], Awaitable[None]]) -> None:
        """Look, for ever, when each outage ends."""
        while True:
            await self._begun.wait()
            await asyncio.sleep(_LOOK_EVERY)
            try:
                await check()
            except EngineError:
                continue
            self.note(answers=True)
