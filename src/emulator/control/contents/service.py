"""Lists the stored records, from the engine's catalog. Each list is bounded, and reads no record as a whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from msgspec import UNSET

from emulator.clock import Clock
from emulator.control.contents.rules import (
    MAX_COUNT,
    ComingExpiries,
    Content,
    ContentPage,
    Filter,
    checked_rows,
    coming,
    cursor_after,
    cursor_after_owner,
    digest_of,
    key_after_cursor,
    latest_change,
)
from emulator.engines.engine import Engine
from emulator.engines.shapes import NEVER, Key, ListedBallot, Thing
from emulator.kinds import Kind, Shape
from emulator.limits.id_quota import is_quota_record
from emulator.wire.cursors import FIRST

T = TypeVar("T")

Found = tuple[list[tuple[Key, Content]], str]
"""Rows with their keys, and a cursor if the search stopped before the end."""

NO_FILTER: Final = Filter()
_MAX_OWNERS: Final = 200
"""Extensions whose polls, rankings or buffers one call looks at."""


@dataclass(eq=False, repr=False)
class Contents:
    """The stored records of one service."""

    _engine: Engine
    _clock: Clock
    kinds: Sequence[Kind]
    _state_lifetime: int
    """How long a state store lives after its latest change, in ms."""

    def __post_init__(self) -> None:
        self.started_at = self._clock.now()
        """When this service started, in Unix ms by its clock."""
        self._kinds = {kind.name: kind for kind in self.kinds}
        self._secret = {name for kind in self.kinds if kind.has_secret_names for name in kind.stored_as}

    async def counts(self) -> dict[str, int]:
        """Return the number of records of each kind, up to 10,000 each."""
        stored = [name for kind in self.kinds for name in kind.stored_as]
        found = await self._engine.catalog.count(stored, now=self._clock.now(), most=MAX_COUNT)
        return {kind.name: min(MAX_COUNT, sum(found[each] for each in kind.stored_as)) for kind in self.kinds}

    async def page(self, name: str, only: Filter = NO_FILTER, *, limit: int, cursor: str = FIRST) -> ContentPage:
        """Return up to 200 records of a kind. Raises `BadRequest`.

        A page may have fewer than `limit` rows although there are more, if very many extensions were looked through.
        """
        kind, start, limit = self._kinds[name], key_after_cursor(cursor), checked_rows(limit)
        read = {
            Shape.BALLOTS: self._ballots,
            Shape.LOGS: self._logs,
            Shape.DOCUMENTS: self._documents,
            Shape.POOLS: self._pools,
        }[kind.shape]
        found, rest = await read(kind, only, limit + 1, start)
        if len(found) > limit:
            rest = cursor_after(found[limit - 1][0])
        return ContentPage([content for _, content in found[:limit]], rest)

    async def upcoming(self, limit: int) -> ComingExpiries:
        """Return the next records to expire, at most 200. Raises `BadRequest`."""
        limit, now, found = checked_rows(limit), self._clock.now(), []
        async for page in self._engine.catalog.upcoming(now=now):
            found += [coming(each, self._secret) for each in page if not is_quota_record(each.key)]
            if len(found) >= limit:
                break
        return ComingExpiries(now, found[:limit])

    async def _ballots(self, kind: Kind, only: Filter, limit: int, start: Key | None) -> Found:
        found, rest = await self._list_by_owner(self._engine.ballots.listing, kind.stored_as[0], only, limit, start)
        return [(each.key, self._of_ballot(kind, each)) for each in found], rest

    def _of_ballot(self, kind: Kind, ballot: ListedBallot) -> Content:
        key, casts, expires_at, _ = ballot
        latest = self._latest_change(kind, expires_at) if casts else 0
        facts = kind.facts(ballot, self._clock.now()) if kind.facts else {}
        return Content(**_owner_members(key), count=casts, latest=latest, expires_at=_shown_expiry(expires_at), **facts)

    async def _logs(self, kind: Kind, only: Filter, limit: int, start: Key | None) -> Found:
        found, rest = await self._list_by_owner(self._engine.logs.listing, kind.stored_as[0], only, limit, start)
        return [
            (
                key,
                Content(
                    **_owner_members(key), count=entries, latest=latest, expires_at=latest + self._lifetime_of(kind)
                ),
            )
            for key, entries, latest in found
        ], rest

    async def _list_by_owner(
        self, listing: Callable[..., Awaitable[list[T]]], kind: str, only: Filter, limit: int, start: Key | None
    ) -> tuple[list[T], str]:
        """Return ballots or logs of all owners, or of one owner, and the cursor after the last owner that was read."""
        now, channel = self._clock.now(), only.channel_id or None
        found: list[T] = []
        owner = start.owner if start else ""
        if start:
            group = Key(kind, owner, "", channel)
            found += await listing(group, now=now, limit=limit, after=start, matching=only.search)
        owners: Sequence[str] = () if start else [only.client_id]
        if not only.client_id:
            owners = await self._engine.catalog.owners(kind, now=now, limit=_MAX_OWNERS, after=owner)
        for owner in owners:
            if len(found) < limit:
                group = Key(kind, owner, "", channel)
                found += await listing(group, now=now, limit=limit - len(found), matching=only.search)
        return found, cursor_after_owner(kind, owner) if len(owners) == _MAX_OWNERS else FIRST

    async def _documents(self, kind: Kind, only: Filter, limit: int, start: Key | None) -> Found:
        things, now = await self._find(kind, only, limit, start), self._clock.now()
        values = await self._engine.documents.read([key for key, _, _ in things], now=now) if kind.facts else {}
        found = []
        for key, expires_at, size in things:
            row: dict[str, Any] = _owner_members(key) | {"user": key.user or UNSET, "size": size}
            if kind.has_secret_names:
                row["id"] = digest_of(key)
            if kind.facts:
                if key not in values:
                    continue
                row |= kind.facts(values[key], now)
            latest = self._latest_change(kind, expires_at)
            found.append((key, Content(**row, latest=latest, expires_at=_shown_expiry(expires_at))))
        return found, FIRST

    async def _pools(self, kind: Kind, only: Filter, limit: int, start: Key | None) -> Found:
        things = await self._find(kind, only, limit, start)
        keys, now = [key for key, _, _ in things], self._clock.now()
        stocks, counts = await self._engine.pools.stocks(keys, now=now), await self._engine.pools.counts(keys, now=now)
        return [
            (
                key,
                Content(
                    **_owner_members(key),
                    count=counts[key].handed,
                    left=counts[key].left,
                    latest=self._latest_change(kind, expires_at),
                    expires_at=_shown_expiry(expires_at),
                    **(kind.facts(stocks[key].note, now) if kind.facts else {}),
                ),
            )
            for key, expires_at, _ in things
            if key in stocks and key in counts
        ], FIRST

    def _lifetime_of(self, kind: Kind) -> int:
        return self._state_lifetime if kind.lifetime is None else kind.lifetime

    def _latest_change(self, kind: Kind, expires_at: int) -> int:
        return latest_change(expires_at, self._lifetime_of(kind))

    async def _find(self, kind: Kind, only: Filter, limit: int, start: Key | None) -> list[Thing]:
        return await self._engine.catalog.things(
            kind.stored_as,
            now=self._clock.now(),
            limit=limit,
            owner=only.client_id or None,
            channel=only.channel_id or None,
            matching=only.search,
            after=start,
        )


def _owner_members(key: Key) -> dict[str, Any]:
    """Return the client id, channel, user and name of a listed record, from its key."""
    return {"id": key.name or key.kind, "client_id": key.owner, "channel_id": key.channel or ""}


def _shown_expiry(expires_at: int) -> int | None:
    return None if expires_at >= NEVER else expires_at
