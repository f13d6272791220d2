"""The key that signs the service's own tokens, stored with the data (ruling A5)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from emulator.core.clock import Clock
from emulator.core.ids import new_signing_key
from emulator.core.keys import NEVER, Key
from emulator.storage.kinds import VALUE, Stored, wrong
from emulator.storage.records import DocumentRecord
from emulator.storage.shapes import Documents

KIND = "signing_key"
"""The kind of the document with the key."""
_KEY = Key(KIND, "", "")
_VALUE_PATTERN = re.compile(rb"[0-9a-f]{64}")
_log = logging.getLogger("emulator")


class SigningKey:
    """Holds the service's signing key in `value`.

    All nodes that share data use one key, even after the data is deleted.
    """

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock
        self._is_stored = False
        self.on_change: Callable[[], object] = _do_nothing
        """Called when the key changes, which invalidates all issued tokens."""
        self.value = new_signing_key()

    def close(self) -> None:
        """Drop the callback, which refers to the user of this key."""
        self.on_change = _do_nothing

    async def sync(self) -> None:
        """Load the stored key; if there is none, store this one. Raises `EngineError`."""
        own = self.value.encode()
        found = await self._documents.read([_KEY], now=self._clock.now())
        if found.get(_KEY) == own:
            self._is_stored = True
            return
        if self._is_stored:
            _log.warning(
                "the data was deleted or replaced while the service ran; the service continues with the new data"
            )
        written = await self._documents.update(
            [_KEY], lambda found: found or {_KEY: own}, now=self._clock.now(), expires_at=NEVER
        )
        self._is_stored = True
        if written[_KEY] != own:
            self.value = written[_KEY].decode()
            self.on_change()

    def record(self) -> DocumentRecord:
        """Return the key as a record to load with other data, so that the key stays in use afterwards."""
        return DocumentRecord(_KEY, NEVER, self.value.encode())

    async def restore(self) -> None:
        """Store the key again after the service has deleted the data itself."""
        self._is_stored = False
        await self.sync()


def _do_nothing() -> None:
    """Do nothing: no tokens are verified with this key."""


def _check_key(record: DocumentRecord) -> None:
    if record.key != _KEY:
        raise wrong("key", "there is only one signing key, and it belongs to no extension")
    if not _VALUE_PATTERN.fullmatch(record.value):
        raise wrong(VALUE, "must be 64 hexadecimal digits")  # not what it is: it is a secret


STORED = (Stored(DocumentRecord, KIND, _check_key),)
