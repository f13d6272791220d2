"""An engine: all the shapes of data on one medium, and the relay between processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from emulator.engines.base import Ballots, Documents, Expired, Logs, Relay
from emulator.engines.pools import Pools, Rosters


class Engine(Protocol):
    """A place to keep data, divided into namespaces that never see each other.

    Constructed closed; `async with` opens it.
    """

    name: str
    """What `ready` says of it: `sqlite`, …"""
    warnings: Sequence[str]
    """Once it is open: what makes its medium less safe than it could be, a line each."""
    documents: Documents
    ballots: Ballots
    logs: Logs
    pools: Pools
    rosters: Rosters
    relay: Relay

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...

    async def check(self) -> None:
        """Return if a request sent now could be served; raise `EngineError` if not."""
        ...

    async def purge(self, *, now: int) -> list[Expired]:
        """Take away what is past its end at `now` and say what it was, in the order it fell due.

        Housekeeping: no answer depends on whether or when this ran.
        """
        ...

    async def tidy(self) -> None:
        """Give back the room of what was purged, dropped or reset, in short steps; as long as that takes."""
        ...

    async def reset(self) -> None:
        """Forget everything in this namespace, in a time that does not grow with how much there was."""
        ...
