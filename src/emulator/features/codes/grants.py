"""Grants: the users of each `mark_*` call, and how many codes they may redeem (rulings C3, C4)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from emulator.core.callers import Caller, opaque_id_of
from emulator.core.clock import Clock
from emulator.core.ids import NewId
from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.features.codes.rules import (
    LIFETIME,
    Allowances,
    CodeSet,
    GrantBody,
    Granted,
    allowances,
    gains,
    grants_of,
    live_grants,
    pool_keys,
    prizes_by_set,
    roster_key,
    users_removed,
)
from emulator.features.directory import Directory
from emulator.storage.pools import Pools, Rosters, Stock

_BATCH: Final = 1_000
"""Users that one engine operation adds."""
_FIRST_BATCH: Final = 10
"""As many at first, while it is unknown how many grants they have."""
_MAX_LOOKUPS: Final = 20_000
"""Pairs of a user and a grant that one engine operation should look up at most."""


class Marked(NamedTuple):
    """The outcome of a `mark_*` call."""

    users: int
    """The distinct users that the call names."""
    gained: int
    """How many of them may redeem more codes than before."""


class PendingGrant:
    """A `mark_*` call in progress. Its users are on a roster, which has no effect until `Grants.put_in_effect`."""

    def __init__(
        self, client_id: str, rosters: Rosters, clock: Clock, new_id: NewId, sets: Mapping[int, CodeSet], until: int
    ) -> None:
        """`sets` are the sets when the call began, and `until` is when the roster expires, in Unix ms."""
        self.roster = roster_key(client_id, new_id())
        self.users: Counter[Allowances] = Counter()
        """The number of distinct users, by what they were granted before."""
        self._rosters = rosters
        self._clock = clock
        self._new_id = new_id
        self._sets = sets
        self._until = until
        self._batch = _FIRST_BATCH
        self._most_grants = 1
        """The most grants that a user had so far."""
        self._first_user = ""
        """The first user on the roster; empty for none."""
        self._abandoned: list[Key] = []

    async def add(self, users: Sequence[str]) -> None:
        """Add users, in any spelling."""
        start = 0
        while start < len(users):
            some = users[start : start + self._batch]
            start += self._batch
            # One spelling of `5` and `U5`, so that a user in both counts once.
            await self._add(list(dict.fromkeys(opaque_id_of(user) if user.isdigit() else user for user in some)))

    async def _add(self, users: list[str]) -> None:
        now = self._clock.now()
        notes: dict[str, list[bytes]] = {user: [] for user in users}
        for roster in await self._rosters.listing(self.roster, users, now=now):
            for user in roster.members:
                if roster.name == self.roster.name:
                    notes.pop(user, None)
                elif user in notes:
                    notes[user].append(roster.note)
        await self._rosters.add_members(self.roster, users, now=now, expires_at=self._until)
        self._first_user = self._first_user or users[0]
        for before, count in Counter(map(tuple, notes.values())).items():
            self._most_grants = max(self._most_grants, len(before))
            self.users[allowances(live_grants(grants_of(before), self._sets))] += count
        self._batch = max(1, min(_BATCH, _MAX_LOOKUPS // self._most_grants))

    def restart(self) -> None:
        """Discard the users read so far, because the body repeats the member `users` or is refused."""
        self._abandoned.append(self.roster)
        self.roster = self.roster._replace(name=self._new_id())
        self._first_user = ""
        self.users.clear()

    async def is_whole(self) -> bool:
        """Return whether all users are still on the roster. A reset or a load removes the whole roster."""
        listed = await self._rosters.listing(self.roster, [self._first_user], now=self._clock.now())
        return self.roster.name in [each.name for each in listed]

    async def close(self) -> None:
        """Delete the rosters that were filled before a restart of the call."""
        if self._abandoned:
            await self._rosters.drop(self._abandoned, now=self._clock.now())


@dataclass(eq=False, repr=False)
class Grants:
    """The grants of all extensions: rosters with a note. They expire with the last set of their extension."""

    _pools: Pools
    _rosters: Rosters
    _clock: Clock
    _directory: Directory
    _new_id: NewId

    async def sets(self, client_id: str) -> dict[int, CodeSet]:
        """Return the present sets of an extension by index, in ascending order."""
        return sets_of(await self._pools.stocks(pool_keys(client_id), now=self._clock.now()))

    @asynccontextmanager
    async def begin(self, client_id: str) -> AsyncIterator[PendingGrant]:
        """Begin a `mark_*` call. If the block raises, its users are deleted."""
        sets = await self.sets(client_id)
        pending = PendingGrant(client_id, self._rosters, self._clock, self._new_id, sets, self._expires_at(sets))
        try:
            yield pending
        except BaseException:
            pending.restart()
            raise
        finally:
            await pending.close()

    async def put_in_effect(self, pending: PendingGrant, body: GrantBody) -> Marked:
        """Grant the codes to all users of the call at once.

        Raises `BadRequest` for an unknown prize, and `Unavailable` if a reset or a load removed users of the call.
        """
        key = pending.roster
        sets, now = await self.sets(key.owner), self._clock.now()
        granted = prizes_by_set(body, sets)
        if pending.users:
            note, until = json_codec.encode(granted), self._expires_at(sets)
            is_whole = await pending.is_whole()
            if not is_whole or not await self._rosters.annotate(key, note, now=now, expires_at=until):
                raise users_removed()
            latest = max(each.until for each in (sets | await self.sets(key.owner)).values())
            if latest > until:  # a PUT meanwhile may have extended the other grants only
                await self._rosters.add_members(key, [], now=now, expires_at=latest)
        gained = sum(count for before, count in pending.users.items() if gains(before, granted))
        return Marked(pending.users.total(), gained)

    async def of_caller(self, caller: Caller) -> list[Granted]:
        """Return the grants that apply to the caller, oldest first."""
        names = sorted(await self._directory.names(caller))
        rosters = await self._rosters.listing(roster_key(caller.client_id, ""), names, now=self._clock.now())
        return grants_of(roster.note for roster in rosters)

    async def renew(self, client_id: str) -> None:
        """Delete the grants whose sets have all ended, and extend the others to the expiry of the last set."""
        async for page in self._rosters.all(roster_key(client_id, ""), now=self._clock.now()):
            sets, now = await self.sets(client_id), self._clock.now()  # after the page: it has no grants of newer sets
            granted = {roster_key(client_id, name): grants_of([note]) for name, note in page.items()}
            live = [key for key, grants in granted.items() if live_grants(grants, sets)]
            await self._rosters.drop([key for key, grants in granted.items() if grants and key not in live], now=now)
            until = self._expires_at(sets)
            await asyncio.gather(*(self._rosters.add_members(key, [], now=now, expires_at=until) for key in live))

    def _expires_at(self, sets: Mapping[int, CodeSet]) -> int:
        """Return when grants expire, in Unix ms: with the last set, even if the clock was set back since its PUT."""
        return max([self._clock.now() + LIFETIME, *(each.until for each in sets.values())])


def sets_of(stocks: Mapping[Key, Stock]) -> dict[int, CodeSet]:
    """Return the stored sets by their index, in ascending order."""
    sets = {int(key.name): msgspec.json.decode(stock.note, type=CodeSet) for key, stock in stocks.items()}
    return dict(sorted(sets.items()))
