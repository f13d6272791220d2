"""Lists what the service holds, from the catalog of the engine. Each list is bounded, and reads no whole data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from msgspec import UNSET, UnsetType

from emulator.clock import Clock
from emulator.control.contents.rules import (
    FIRST,
    MAX_COUNT,
    PIN_KIND,
    ComingExpiries,
    Content,
    ContentPage,
    Counts,
    Filter,
    Kind,
    Shape,
    after,
    checked_rows,
    coming,
    cursor_after_owner,
    cursor_of,
    digest_of,
    latest_change,
)
from emulator.engines.base import NEVER, Key, ListedBallot
from emulator.engines.catalog import Thing
from emulator.engines.engine import Engine
from emulator.limits.id_quota import is_quota_record

T = TypeVar("T")

Found = tuple[list[tuple[Key, Content]], str]
"""Rows with their keys, and a cursor if the search stopped before the end."""

NO_FILTER: Final = Filter()
_MAX_OWNERS: Final = 200
"""Extensions whose polls, rankings or buffers one call looks at."""


class PollStatus(Protocol):
    @property
    def status(self) -> str: ...

    @property
    def disabled(self) -> bool | UnsetType: ...


class Pin(Protocol):
    @property
    def channel_id(self) -> str: ...


class CodeSet(Protocol):
    @property
    def name(self) -> str: ...


@dataclass(eq=False, repr=False)
class Contents:
    """What one service holds."""

    _engine: Engine
    _clock: Clock
    _kinds: Mapping[str, Kind]
    """By the name of the list."""
    _poll_of: Callable[..., PollStatus]
    """Takes a listed ballot, and `now` in ms."""
    _pin_of: Callable[[bytes], Pin]
    _code_set_of: Callable[[bytes], CodeSet]

    def __post_init__(self) -> None:
        self.started_at = self._clock.now()
        """When this service started, in Unix ms by its clock."""

    async def counts(self) -> Counts:
        """Return how many things of each kind there are, up to 10,000 each."""
        stored = [name for kind in self._kinds.values() for name in kind.stored_as]
        found = await self._engine.catalog.count(stored, now=self._clock.now(), most=MAX_COUNT)
        return Counts(
            **{name: min(MAX_COUNT, sum(found[each] for each in kind.stored_as)) for name, kind in self._kinds.items()}
        )

    async def page(self, name: str, only: Filter = NO_FILTER, *, limit: int, cursor: str = FIRST) -> ContentPage:
        """Return up to 200 things of a kind. Raises `BadRequest`.

        A page may have fewer than `limit` rows although there are more, if very many extensions were looked through.
        """
        kind, start, limit = self._kinds[name], after(cursor), checked_rows(limit)
        read = {
            Shape.BALLOTS: self._ballots,
            Shape.LOGS: self._logs,
            Shape.DOCUMENTS: self._documents,
            Shape.POOLS: self._pools,
        }[kind.shape]
        found, rest = await read(kind, only, limit + 1, start)
        if len(found) > limit:
            rest = cursor_of(found[limit - 1][0])
        return ContentPage([content for _, content in found[:limit]], rest)

    async def upcoming(self, limit: int) -> ComingExpiries:
        """Return the next things to expire, at most 200. Raises `BadRequest`."""
        limit, now, found = checked_rows(limit), self._clock.now(), []
        async for page in self._engine.catalog.upcoming(now=now):
            found += [coming(each) for each in page if not is_quota_record(each.key)]
            if len(found) >= limit:
                break
        return ComingExpiries(now, found[:limit])

    async def _ballots(self, kind: Kind, only: Filter, limit: int, start: Key | None) -> Found:
        found, rest = await self._of_owners(self._engine.ballots.listing, kind.stored_as[0], only, limit, start)
        return [(each.key, self._of_ballot(kind, each)) for each in found], rest

    def _of_ballot(self, kind: Kind, ballot: ListedBallot) -> Content:
        key, casts, expires_at, _ = ballot
        latest = latest_change(expires_at, kind.lifetime) if casts else 0
        content = Content(**_where(key), count=casts, latest=latest, expires_at=_shown(expires_at))
        if kind.has_status:
            poll = self._poll_of(ballot, now=self._clock.now())
            content.status, content.disabled = poll.status, poll.disabled
        return content

    async def _logs(self, kind: Kind, only: Filter, limit: int, start: Key | None) -> Found:
        found, rest = await self._of_owners(self._engine.logs.listing, kind.stored_as[0], only, limit, start)
        return [
            (key, Content(**_where(key), count=entries, latest=latest, expires_at=latest + kind.lifetime))
            for key, entries, latest in found
        ], rest

    async def _of_owners(
        self, listing: Callable[..., Awaitable[list[T]]], kind: str, only: Filter, limit: int, start: Key | None
    ) -> tuple[list[T], str]:
        """Return ballots or logs of all owners, or of one, and the cursor after the last owner that was looked at."""
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
        things = await self._find(kind, only, limit, start)
        if kind.stored_as == (PIN_KIND,):
            return await self._pins(kind, things), FIRST
        return [
            (
                key,
                Content(
                    **_where(key),
                    user=key.user or UNSET,
                    size=size,
                    latest=latest_change(expires_at, kind.lifetime),
                    expires_at=_shown(expires_at),
                ),
            )
            for key, expires_at, size in things
        ], FIRST

    async def _pins(self, kind: Kind, things: Sequence[Thing]) -> list[tuple[Key, Content]]:
        texts = await self._engine.documents.read([key for key, _, _ in things], now=self._clock.now())
        found = []
        for key, expires_at, _ in things:
            if key in texts:
                channel_id = self._pin_of(texts[key]).channel_id
                content = Content(
                    id=digest_of(key),
                    client_id=key.owner,
                    channel_id=channel_id,
                    status="bound" if channel_id else "unbound",
                    latest=latest_change(expires_at, kind.lifetime),
                    expires_at=_shown(expires_at),
                )
                found.append((key, content))
        return found

    async def _pools(self, kind: Kind, only: Filter, limit: int, start: Key | None) -> Found:
        things = await self._find(kind, only, limit, start)
        keys, now = [key for key, _, _ in things], self._clock.now()
        stocks, counts = await self._engine.pools.stocks(keys, now=now), await self._engine.pools.counts(keys, now=now)
        return [
            (
                key,
                Content(
                    **_where(key),
                    name=self._code_set_of(stocks[key].note).name,
                    count=counts[key].handed,
                    left=counts[key].left,
                    latest=latest_change(expires_at, kind.lifetime),
                    expires_at=_shown(expires_at),
                ),
            )
            for key, expires_at, _ in things
            if key in stocks and key in counts
        ], FIRST

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


def _where(key: Key) -> dict[str, Any]:
    """Return the members of a row that its key gives. Stores of one kind have no names."""
    return {"id": key.name or key.kind, "client_id": key.owner, "channel_id": key.channel or ""}


def _shown(expires_at: int) -> int | None:
    return None if expires_at >= NEVER else expires_at
