"""The record of recent changes of one service, for tests that wait for a change instead of sleeping.

Each change has a number, its mark. A service notes a change right after its commit, in the same step, so a watch sees
none too early and misses none. Only the sandbox keeps a record.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple

from emulator.engines.base import Key

ALL: Final = ""
"""The kind that stands for all kinds, in `watching`."""
KEPT: Final = 2_000
"""Changes of each kind that the record keeps."""


class Change(NamedTuple):
    """One change."""

    mark: int
    """Its number. Later changes have higher numbers."""
    key: Key
    """The thing that changed. The kind of the key is the kind of the change."""
    did: str
    """The event in one word, such as `vote` or `cleared`."""
    user: str
    """The opaque id of the user who did it; empty if unknown."""
    value: str | int | None
    """The value of a vote or the text of an answer. Never a secret, and never the content of a store."""
    at: int
    """Unix ms, by the service's clock."""
    times: int
    """How many votes at once."""


class Changes:
    """Notes changes, and wakes the watches of their kind."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.mark = 1
        """The mark of the latest change. Never 0, and never lower than before."""
        self._kept: defaultdict[str, deque[tuple[int, Key, str, str, str | int | None, int, int]]] = defaultdict(
            partial(deque, maxlen=KEPT)
        )
        self._watches: dict[str, dict[asyncio.Event, None]] = {}

    def note(
        self, key: Key, did: str, user: str = "", value: str | int | None = None, at: int = 0, times: int = 1
    ) -> None:
        """Note a change that is committed. Call it before anything else can run, without `await` in between.

        `at` is the present time, if the caller knows it.
        """
        self.mark = mark = self.mark + 1
        self._kept[key[0]].append((mark, key, did, user, value, at or self._now(), times))
        if self._watches:
            self.wake(key.kind)

    def wake(self, kind: str) -> None:
        """Wake the watches of a kind, for a change that the record does not show."""
        for event in self._watches.get(kind, ()):
            event.set()
        for event in self._watches.get(ALL, ()):
            event.set()

    async def clock_moved(self) -> None:
        """Wake all watches, because something may have expired."""
        self.wake_all()

    def forget(self) -> None:
        """Empty the record at a reset. Marks go on from where they are."""
        self.mark += 1
        self._kept.clear()
        self.wake_all()

    def latest(self, kind: str, most: int) -> list[Change]:
        """Return the latest changes of a kind, oldest first."""
        kept = self._kept.get(kind, ())
        return [Change(*each) for each in list(kept)[-most:]]

    def since(self, mark: int, kind: str, concerns: Callable[[Key], bool]) -> list[Change]:
        """Return the kept changes of a kind after a mark, newest first, whose key `concerns` accepts."""
        found = []
        for each in reversed(self._kept.get(kind, ())):
            if each[0] <= mark:
                break
            if concerns(each[1]):
                found.append(Change(*each))
        return found

    def keeps_since(self, mark: int, kind: str) -> bool:
        """Whether the record still has every change of a kind after a mark."""
        kept = self._kept.get(kind)
        return kept is None or len(kept) < KEPT or kept[0][0] <= mark + 1

    @contextmanager
    def watching(self, kind: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set at each change of a kind, or of `ALL`."""
        event = asyncio.Event()
        watches = self._watches.setdefault(kind, {})
        watches[event] = None
        try:
            yield event
        finally:
            del watches[event]
            if not watches:
                del self._watches[kind]

    def wake_all(self) -> None:
        """Wake all watches, because any data may have changed."""
        for kind in self._watches:
            self.wake(kind)


class NoChanges(Changes):
    """Keeps no record."""

    def __init__(self) -> None:
        super().__init__(lambda: 0)
        self.mark = 0

    def note(
        self, key: Key, did: str, user: str = "", value: str | int | None = None, at: int = 0, times: int = 1
    ) -> None:
        """Do nothing."""

    def forget(self) -> None:
        """Do nothing."""


NO_CHANGES: Final = NoChanges()
