"""The content of a namespace by kind and by expiry, for the control API and the dashboard only.

The rules of `engines/base.py` hold here too. Things that never expire are left out: they are the service's own records,
such as those of users, and there may be millions. The data may change between two steps of one operation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from emulator.engines.base import Expired, Key


class Thing(NamedTuple):
    """A document or a pool."""

    key: Key
    expires_at: int
    size: int
    """The bytes of a document; 0 for a pool."""


class Catalog(Protocol):
    """Finds live documents, ballots, logs and pools over all owners and channels, without reading their content."""

    async def count(self, kinds: Sequence[str], *, now: int, most: int) -> dict[str, int]:
        """Count the things of each kind, up to `most` of one kind."""

    async def owners(self, kind: str, *, now: int, limit: int, after: str = "") -> list[str]:
        """Return up to `limit` owners that have a ballot or a log of this kind, in order, after `after`."""

    async def things(
        self,
        kinds: Sequence[str],
        *,
        now: int,
        limit: int,
        owner: str | None = None,
        channel: str | None = None,
        matching: str = "",
        after: Key | None = None,
    ) -> list[Thing]:
        """Return up to `limit` documents and pools of these kinds, in the order of their keys, after `after`.

        The order is kind, owner, name, channel, user. `owner` and `channel` limit the result to one; `matching` to
        those whose name, channel or user contains that text.
        """

    def upcoming(self, *, now: int) -> AsyncIterator[Sequence[Expired]]:
        """Iterate over pages of the coming expiries, soonest first; a log appears once, with its next entry to expire.

        Pages are bounded, and the event loop runs between them. The iteration may end early if there are many thousand
        entries of logs.
        """
