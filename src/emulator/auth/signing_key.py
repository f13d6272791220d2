"""The key that signs the service's own tokens: made once and kept with the data (ruling A5)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from emulator.clock import Clock
from emulator.engines.base import NEVER, Documents, Key
from emulator.ids import signing_key

_KEPT = Key("signing_key", "", "")
_log = logging.getLogger("emulator")


class SigningKey:
    """`text` is the key. All nodes on the same data have the same: those that run when the data are emptied under them
    and those that start after it agree again."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock
        self._is_kept = False
        self._on_change: list[Callable[[], None]] = []
        self.text = signing_key()

    def on_change(self, changed: Callable[[], None]) -> None:
        """Have `changed` called when what was signed before is worth nothing any more."""
        self._on_change.append(changed)

    async def sync(self) -> None:
        """Take the key that is kept with the data; where none is, keep this one with them."""
        own = self.text.encode()
        if await self._read() == own:
            self._is_kept = True
            return
        if self._is_kept:
            _log.warning("the data were emptied or exchanged under this service, which goes on with what is there now")
        await self._documents.update(
            [_KEPT], lambda found: {} if found else {_KEPT: own}, now=self._clock.now(), expires_at=NEVER
        )
        kept = await self._read()
        self._is_kept = kept is not None
        if kept not in (None, own):
            self.text = kept.decode()
            for changed in self._on_change:
                changed()

    async def restore(self) -> None:
        """As `agree`, after the service itself has emptied the data."""
        self._is_kept = False
        await self.sync()

    async def _read(self) -> bytes | None:
        return (await self._documents.read([_KEPT], now=self._clock.now())).get(_KEPT)
