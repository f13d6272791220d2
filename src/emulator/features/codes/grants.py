"""Grants: the users of each `mark_*` call, and how many codes they may redeem (rulings C3, C4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, Protocol

import msgspec

from emulator.callers import Caller, opaque_id_of
from emulator.clock import Clock
from emulator.engines.pools import Rosters
from emulator.engines.shapes import Documents, Key
from emulator.features.codes.refusals import users_removed
from emulator.features.codes.rules import (
    LIFETIME,
    Allowances,
    CodeGrant,
    CodeSet,
    GrantBody,
    allowances,
    gains,
    grants_key,
    live_grants,
    prizes_by_set,
    roster_key,
)
from emulator.ids import NewId
from emulator.wire import json_codec

_BATCH: Final = 1_000
"""Users that one engine operation adds."""
_NO_GRANTS: Final = b"[]"
_MAX_LOOKUPS: Final = 20_000
"""Pairs of a user and a roster that one engine operation looks up."""


class Users(Protocol):
    """The directory of users."""

    def shared_id_key(self, caller: Caller) -> Key:
        """Return the key of the document with the caller's shared id."""

    def names_with(self, caller: Caller, shared_id: bytes | None) -> set[str]:
        """Return all ids under which a list of users may contain the caller. `shared_id` is that document, if any."""


class Marked(NamedTuple):
    """The outcome of a `mark_*` call."""

    users: int
    """The distinct users that the call names."""
    gained: int
    """How many of them may redeem more codes than before."""


class PendingGrant:
    """A `mark_*` call in progress. Its users are on a roster, which has no effect until `Grants.put_in_effect`."""

    def __init__(
        self,
        client_id: str,
        rosters: Rosters,
        clock: Clock,
        new_id: NewId,
        *,
        known: list[CodeGrant],
        sets: Mapping[int, CodeSet],
        until: int,
    ) -> None:
        """`known` are all grants when the call began, and `until` is when the roster expires, in Unix ms."""
        self.client_id = client_id
        self.all_grants = known
        self.until = until
        self.roster = new_id()
        self.users: Counter[Allowances] = Counter()
        """The number of distinct users, by their earlier grants."""
        self._rosters = rosters
        self._clock = clock
        self._new_id = new_id
        self._earlier = live_grants(known, sets)
        self._first_user = ""
        """The first user on the roster; empty for none."""
        self._abandoned: list[Key] = []

    async def add(self, users: Sequence[str]) -> None:
        """Add users, in any spelling."""
        step = max(1, min(_BATCH, _MAX_LOOKUPS // len(self._earlier))) if self._earlier else _BATCH
        for start in range(0, len(users), step):
            # One spelling of `5` and `U5`, so that a user in both counts once.
            spelled = (opaque_id_of(user) if user.isdigit() else user for user in users[start : start + step])
            await self._add(list(dict.fromkeys(spelled)))

    async def _add(self, users: list[str]) -> None:
        key, now = roster_key(self.client_id, self.roster), self._clock.now()
        if self._earlier:
            rosters = await self._rosters.listing(key, users, now=now)
            new = [user for user in users if self.roster not in rosters.get(user, ())]
            for on, count in Counter(frozenset(rosters.get(user, ())) for user in new).items():
                self.users[allowances([each for each in self._earlier if each.roster in on])] += count
        added = await self._rosters.add_members(key, users, now=now, expires_at=self.until)
        self._first_user = self._first_user or users[0]
        if not self._earlier:
            self.users[()] += added

    def restart(self) -> None:
        """Discard the users read so far, because the body repeats the member `users` or is refused."""
        self._abandoned.append(roster_key(self.client_id, self.roster))
        self.roster = self._new_id()
        self._first_user = ""
        self.users.clear()

    async def is_whole(self) -> bool:
        """Return whether all users are still on the roster. A reset or a load removes the whole roster."""
        if not self._first_user:
            return True
        key = roster_key(self.client_id, self.roster)
        found = await self._rosters.listing(key, [self._first_user], now=self._clock.now())
        return self.roster in found.get(self._first_user, ())

    async def close(self) -> None:
        """Delete the rosters that were filled before a restart of the call."""
        if self._abandoned:
            await self._rosters.drop(self._abandoned, now=self._clock.now())


class Grants:
    """The grants of all extensions. They expire with the last set of their extension."""

    def __init__(self, documents: Documents, rosters: Rosters, clock: Clock, users: Users, new_id: NewId) -> None:
        self._documents = documents
        self._rosters = rosters
        self._clock = clock
        self._users = users
        self._new_id = new_id

    @asynccontextmanager
    async def begin(
        self, client_id: str, known: list[CodeGrant], sets: Mapping[int, CodeSet]
    ) -> AsyncIterator[PendingGrant]:
        """Begin a `mark_*` call. If the block raises, its users are deleted. `known` was read before `sets`."""
        until = self._expires_at(sets)
        pending = PendingGrant(client_id, self._rosters, self._clock, self._new_id, known=known, sets=sets, until=until)
        try:
            yield pending
        except BaseException:
            pending.restart()
            raise
        finally:
            await pending.close()

    async def put_in_effect(self, pending: PendingGrant, body: GrantBody, sets: Mapping[int, CodeSet]) -> Marked:
        """Grant the codes to all users of the call at once.

        Raises `BadRequest` for an unknown prize, and `Unavailable` if a reset or a load removed users of the call.
        `sets` was read after the call began. A grant that is newer than `sets` may be of a newer set, so only those
        that were known before are deleted if `sets` has none of their sets.
        """
        new = CodeGrant(pending.roster, prizes_by_set(body, sets))
        key = grants_key(pending.client_id)
        ended = _rosters_of(pending.all_grants) - _rosters_of(live_grants(pending.all_grants, sets))

        def add(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            return {key: json_codec.encode([*_grants_without(ended, found.get(key)), new])}

        await self._documents.update([key], add, now=self._clock.now(), expires_at=self._expires_at(sets))
        if not await pending.is_whole():
            await self.clear(pending.client_id, [new])
            raise users_removed()
        gained = sum(count for before, count in pending.users.items() if gains(before, new))
        return Marked(pending.users.total(), gained)

    async def grants_of(self, caller: Caller) -> list[CodeGrant]:
        """Return the grants that apply to the caller, oldest first."""
        key, shared_id = grants_key(caller.client_id), self._users.shared_id_key(caller)
        found = await self._documents.read([key, shared_id], now=self._clock.now())
        grants = _decode_grants(found.get(key))
        if not grants:
            return []
        names = sorted(self._users.names_with(caller, found.get(shared_id)))
        rosters = await self._rosters.listing(roster_key(caller.client_id, ""), names, now=self._clock.now())
        on = {roster for each in rosters.values() for roster in each}
        return [grant for grant in grants if grant.roster in on]

    async def extend(self, client_id: str, sets: Mapping[int, CodeSet]) -> None:
        """Move the expiry of all grants in effect to the sets' expiry, after a PUT."""
        key = grants_key(client_id)
        now, until = self._clock.now(), self._expires_at(sets)
        written = await self._documents.update([key], lambda found: found, now=now, expires_at=until)
        for grant in _decode_grants(written.get(key)):
            await self._rosters.add_members(roster_key(client_id, grant.roster), [], now=now, expires_at=until)

    async def all_grants(self, client_id: str) -> list[CodeGrant]:
        """Return all grants, including grants for sets that no longer exist."""
        key = grants_key(client_id)
        return _decode_grants((await self._documents.read([key], now=self._clock.now())).get(key))

    async def clear(self, client_id: str, known: list[CodeGrant]) -> None:
        """Delete these grants. A grant that was added since belongs to a newer set, and stays."""
        key, ended = grants_key(client_id), _rosters_of(known)

        def remove(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            return {key: json_codec.encode(_grants_without(ended, found[key]))} if key in found else {}

        now = self._clock.now()
        await self._documents.update([key], remove, now=now, expires_at=now)
        await self._documents.drop_equal(key, _NO_GRANTS, now=now)
        await self._rosters.drop([roster_key(client_id, grant.roster) for grant in known], now=now)

    def _expires_at(self, sets: Mapping[int, CodeSet]) -> int:
        """Return when grants expire, in Unix ms: with the last set, even if the clock was set back since its PUT."""
        return max([self._clock.now() + LIFETIME, *(each.until for each in sets.values())])


def _decode_grants(text: bytes | None) -> list[CodeGrant]:
    return [] if text is None else msgspec.json.decode(text, type=list[CodeGrant])


def _rosters_of(grants: Sequence[CodeGrant]) -> set[str]:
    return {grant.roster for grant in grants}


def _grants_without(rosters: set[str], text: bytes | None) -> list[CodeGrant]:
    return [grant for grant in _decode_grants(text) if grant.roster not in rosters]
