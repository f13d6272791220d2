"""Committed writes: their listeners, and a record of recent ones, for tests that wait instead of sleeping.

A service tells of a change right after its commit, in the same step, so a watch sees none too early and misses none.
Each change in the record has a number, its mark. Only the sandbox keeps a record.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from emulator.core.keys import Key

MAX_KEPT = 2_000
"""Changes of each kind that the record keeps."""


class Change(Struct, gc=False):
    """One change. A service fills in the fields it knows; the record adds the mark, and the time if it is missing."""

    key: Key
    """The thing that changed. The kind of the key is the kind of the change."""
    did: str
    """The event in one word, such as `vote` or `cleared`."""
    user: str = ""
    """The opaque id of the user who did it; empty if unknown."""
    value: str | int | None = None
    """The value of a vote or the text of an answer. Never a secret, and never the content of a store."""
    at: int = 0
    """Unix ms, by the service's clock."""
    times: int = 1
    """How many votes at once."""
    content: object = None
    """What was written, for the listeners. The record does not keep it."""
    mark: int = 0
    """Its number. Later changes have higher numbers."""


class Watchable:
    """What may have news, and those who wait for it."""

    def __init__(self) -> None:
        self._watches: dict[asyncio.Event, None] = {}

    def wake(self) -> None:
        """Wake all watches, because there is something new, or any data may have changed."""
        for event in self._watches:
            event.set()

    @contextmanager
    def watching(self) -> Iterator[asyncio.Event]:
        """Yield an event that is set at everything new."""
        event = asyncio.Event()
        self._watches[event] = None
        try:
            yield event
        finally:
            del self._watches[event]


Listener = Callable[[Change], Awaitable[None]]


class Changes(Watchable):
    """Records committed writes, wakes those who wait for one, and tells the listener of their kind."""

    def __init__(self, now: Callable[[], int] | None) -> None:
        """Without `now`, as in production, nothing is recorded."""
        super().__init__()
        self._now = now
        self.mark = 1 if now else 0
        """The mark of the latest change. Never lower than before, and 0 only if nothing is recorded."""
        self._kept: defaultdict[str, deque[Change]] = defaultdict(partial(deque, maxlen=MAX_KEPT))
        self._listeners: dict[str, Listener] = {}
        self._forgotten: dict[str, int] = {}
        """The mark of the latest change of each kind that a reset has removed from the record."""

    def note(self, change: Change) -> None:
        """Record a change. Call this right after its commit, without `await` in between."""
        if self._now is None:
            return
        kept = change if change.content is None else replace(change, content=None)
        self.mark = kept.mark = self.mark + 1
        kept.at = kept.at or self._now()
        self._kept[kept.key[0]].append(kept)
        if self._watches:
            self.wake()

    async def clock_moved(self) -> None:
        """Wake all watches, because something may have expired."""
        self.wake()

    def forget(self) -> None:
        """Empty the record at a reset. Marks continue from their last number."""
        self.mark += self.mark > 0
        self._forgotten |= {kind: kept[-1].mark for kind, kept in self._kept.items()}
        self._kept.clear()
        self.wake()

    def latest(self, kind: str, most: int) -> list[Change]:
        """Return the latest changes of a kind, oldest first."""
        return list(self._kept.get(kind, ()))[-most:]

    def since(self, mark: int, kind: str, concerns: Callable[[Key], bool]) -> list[Change]:
        """Return the recorded changes of a kind after the one numbered `mark`, newest first, whose key `concerns`
        accepts.
        """
        later = takewhile(lambda each: each.mark > mark, reversed(self._kept.get(kind, ())))
        return [each for each in later if concerns(each.key)]

    def has_all_since(self, mark: int, kind: str) -> bool:
        """Whether the record still has every change of a kind after the one numbered `mark`."""
        if mark < self._forgotten.get(kind, 0):
            return False
        kept = self._kept.get(kind)
        return kept is None or len(kept) < MAX_KEPT or kept[0].mark <= mark + 1

    def listen(self, kinds: Iterable[str], listener: Listener) -> None:
        """Call `listener` with each change of these kinds. It must not fail, because the change is saved."""
        self._listeners.update(dict.fromkeys(kinds, listener))

    def close(self) -> None:
        """Forget the listeners: they refer to parts of the service that refer to this."""
        self._listeners.clear()

    async def committed(self, *changes: Change) -> None:
        """Report the changes of one commit. Call this right after the commit, without `await` in between."""
        for change in changes:
            self.note(change)
        for change in changes:
            if listener := self._listeners.get(change.key[0]):
                await listener(change)
