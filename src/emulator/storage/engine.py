"""An engine, which stores all data types of one namespace, and a medium with many namespaces.

Both are interfaces. Their methods with a body are what an engine does that needs nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, Self

from emulator.core.errors import EngineError
from emulator.core.keys import Expired
from emulator.storage.pools import Pools, Rosters
from emulator.storage.records import Record
from emulator.storage.shapes import Ballots, Catalog, Documents, Logs, Relay


class Engine(Protocol):
    """One namespace of a medium. `async with` opens it."""

    name: str
    """The name that `GET /_emulator/ready` shows: `sqlite` or `redis`."""
    location: str
    """Where the data is, as the log shows it: `memory`, `/srv/data.db` or `Redis at host:6379/0`. Never a password."""
    format: int
    """The format in which it keeps data. Opening data of another format raises `EngineError`."""
    survives_restart: bool
    """Whether the data outlives the process."""
    warnings: Sequence[str] = ()
    """Risks of losing or leaking data, one line each, found when the engine opens."""
    documents: Documents
    ballots: Ballots
    logs: Logs
    pools: Pools
    rosters: Rosters
    catalog: Catalog
    relay: Relay

    def exclusive_lock(self) -> AbstractContextManager[None]:
        """Hold the lock on data that only one process at a time can use.

        Raises `EngineError` if another process holds it. Opens nothing. By default, processes may share the data.
        """
        return nullcontext()

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...

    async def check(self) -> None:
        """Raise `EngineError` if a request sent now would fail."""

    async def time(self) -> int | None:
        """Return the time of the server that keeps the data, in Unix ms; `None` if it has no clock of its own."""
        return None

    def purge(self, *, now: int) -> AsyncIterator[Sequence[Expired]]:
        """Remove everything that has expired at `now`, page by page. No other result depends on it.

        Yields each page right after it was removed. A log with many expired entries is on several pages.
        """

    async def tidy(self) -> None:
        """Free the space of everything that was purged, dropped or reset, in short steps, until all is free."""

    async def reset(self) -> None:
        """Delete everything in this namespace, in constant time."""

    def dump(self, *, now: int) -> AsyncIterator[Sequence[Record]]:
        """Iterate over pages of everything that is alive in this namespace, in the order of `storage/records.py`.

        Writing may go on during the iteration. Pages are bounded, and the event loop runs between them.
        """

    async def load(self, pages: AsyncIterator[Sequence[Record]], *, replace: bool) -> None:
        """Write these records, which must be in the order of a dump, in one step: others see all of them or none.

        With `replace`, everything else in the namespace is deleted in the same step. Without, a record replaces
        everything under its key (a ballot with its casts, a log with its entries), and all else stays. A page has some
        hundred records at most, because other operations run only between two pages.
        """

    can_copy: bool = False
    """Whether `dump` sees one instant while others write, and `set_aside` works."""

    async def set_aside(self) -> None:
        """Empty this namespace in constant time, and keep in one step all that it held, for `take_back`.

        Data kept earlier is deleted. A killed process loses its kept data. Raises `EngineError` unless
        `can_copy`.
        """
        raise EngineError(f"{self.name.capitalize()} cannot keep the data of a namespace for an undo")

    async def take_back(self) -> None:
        """Replace everything in this namespace with the data that `set_aside` kept, in constant time and in one step.

        Raises `EngineError` if nothing is kept.
        """
        raise EngineError(f"{self.name.capitalize()} cannot keep the data of a namespace for an undo")

    async def drop_aside(self) -> None:
        """Delete the data that `set_aside` kept, if there is any."""
        return

    async def size(self) -> int:
        """Return the number of documents, ballots, logs, lists, pools and rosters, expired ones included."""

    async def drop(self) -> None:
        """Delete everything in this namespace, and the engine's state for it. Close the engine next.

        Another process that has the namespace open finds it empty.
        """


class Medium(Protocol):
    """A place to keep data, divided into separate namespaces.

    `async with` keeps its engines' shared connections open. Without it, they stay open while any engine is open.
    """

    path: str | None = None
    """The database file; `None` for data that is in no such file, or in a temporary one."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        return

    def engine(self, namespace: str) -> Engine:
        """Return a closed engine of a namespace. Only one engine may be open at a time for each namespace."""

    async def namespaces(self) -> list[str]:
        """Return the names of all stored namespaces, open or not, in order."""

    async def size(self, namespace: str) -> int:
        """Return the number of records of a namespace, which need not be open."""
