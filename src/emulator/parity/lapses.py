"""Tracks records that have expired in the sandbox but would still exist in production."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from emulator.bounded_cache import BoundedCache
from emulator.engines.shapes import NEVER, Expired, Key
from emulator.parity.service import LIFETIME, note

_KEPT: Final = 10_000


class Lapses:
    """The expired records of stores and trivia, until they would also expire in production. Empty in production.

    Housekeeping and moves of the clock report them. Forgotten at a restart.
    """

    def __init__(self, lifetimes: Mapping[str, tuple[int, int]]) -> None:
        """`lifetimes` has, by kind of record, the lifetimes here and in production, in ms."""
        self._lifetimes = lifetimes
        self._until: BoundedCache[Key, int] = BoundedCache(_KEPT)
        """When each would expire in production, in Unix ms."""

    def __len__(self) -> int:
        return len(self._until)

    def clear(self) -> None:
        self._until.clear()

    def expired(self, found: Iterable[Expired]) -> None:
        """Add expired records."""
        for key, at in found if self._lifetimes else ():
            if key.kind in self._lifetimes:
                here, there = self._lifetimes[key.kind]
                self._until[key] = NEVER if there >= NEVER else at - here + there

    def read(self, keys: Iterable[Key], now: int) -> None:
        """If production would still have any of these records, note that the response lacks their data."""
        if any([self._is_kept(key, now) for key in keys]):
            note(LIFETIME)

    def read_all(self, kind: str, owner: str, now: int) -> None:
        """If production would still have any record of this kind and owner, note that the response lacks its data."""
        if len(self):
            self.read([key for key in self._until if key.kind == kind and key.owner == owner], now)

    def changed(self, keys: Iterable[Key], now: int) -> None:
        """Note a partial change of these records. Production would have kept the data that has expired here."""
        kept = [key for key in keys if self._is_kept(key, now)]
        if kept:
            note(LIFETIME)
        for key in kept:
            there = self._lifetimes[key.kind][1]
            self._until[key] = NEVER if there >= NEVER else now + there

    def replaced(self, keys: Iterable[Key]) -> None:
        """Stop tracking records that were replaced as a whole."""
        for key in keys:
            self._until.pop(key)

    def _is_kept(self, key: Key, now: int) -> bool:
        until = self._until.get(key)
        if until is not None and until <= now:
            self._until.pop(key)
            return False
        return until is not None
