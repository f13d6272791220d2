"""Sets of codes as they are stored; and grants: the users of each `mark_*` call, and how many codes they may redeem
(rulings C2, C3, C4).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import msgspec
from msgspec import Struct

from emulator.contract.limits import MAX_CODE_LENGTH, MAX_SETS
from emulator.core.callers import Caller, opaque_id_of
from emulator.core.clock import DAY, Clock
from emulator.core.errors import BadRequest, Facts, Unavailable, refusal
from emulator.core.ids import NewId
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import invalid_member
from emulator.features.directory import Directory
from emulator.storage.kinds import Stored, accept_any, decoded, wrong
from emulator.storage.pools import Pools, Rosters, Stock
from emulator.storage.records import (
    HandedRecord,
    ListItemsRecord,
    ListRecord,
    MemberRecord,
    PoolRecord,
    RosterRecord,
    SpentRecord,
)

_MAX_BATCH = 1_000
"""Users that one engine operation adds."""
_FIRST_BATCH = 10
"""As many at first, while it is unknown how many grants they have."""
_MAX_LOOKUPS = 20_000
"""Pairs of a user and a grant that one engine operation should look up at most."""
_FIRST_CUTOFF_IN_MS = 100_000_000_000
"""A cutoff from here up is in milliseconds; a smaller one is in seconds (ruling C4)."""
_MAX_PRIZE_LIMIT = 1_000_000
_MAX_PRIZES = 1_000
LIFETIME = 90 * DAY
"""A set expires this long after its last PUT, in ms (Limits, ruling C2)."""


class CodeSet(Struct, omit_defaults=True):
    """The stored metadata of a set."""

    name: str
    set_id: str
    """Survives a PUT at the same index; a set defined after a DELETE or an expiry has a new one."""
    until: int
    """When the set expires, in Unix ms."""
    earlier: int = 0
    """The codes that the index had handed out before this set replaced another."""


GrantedCodes = dict[str, tuple[int, int]]
"""What one `mark_*` call grants to each user on its roster.

Per set id: the number of codes, and the user's limit for the set. The note of a roster; empty while it has no effect.
"""


@refusal(BadRequest, "Unknown prize", "C5", "No code set can have this index",
         "Name a prize from 0 to {highest}, as in `extcli codes redeem 0`.")  # fmt: skip
def no_such_prize(*, index: int, highest: int) -> Facts:
    return Facts(f"prize: {index} is not within 0 to {highest}", f"prize {index}", f"0 to {highest}")


@refusal(Unavailable, "Users removed", "C3", "A reset removed the users of the call", "Send the call again.")
def users_removed() -> Facts:
    detail = "during the call, the service was reset or loaded other data; nothing was changed"
    return Facts(detail, "a call that a reset interrupted", "a call that no reset interrupts")


@refusal(BadRequest, "Unknown prize", "C3", "There is no code set at this index",
         "Upload the set first: `extcli codes upload`; `extcli codes list` shows the indices.")  # fmt: skip
def no_set(*, position: int, index: int, indices: Iterable[int]) -> Facts:
    known = ", ".join(map(str, indices))
    existing = f"sets exist at {known}" if known else "no sets are defined"
    detail = f"prizes[{position}]: there is no code set at index {index}; {existing}"
    return Facts(detail, f"prize {index}", f"a prize with a set; {existing}")


class GrantBody(Struct):
    """The codes that a `mark_*` call grants to each user."""

    prize_limits: list[int]
    """Entry i limits the codes of set i that a user may have."""
    prizes: list[int]
    """Set indices, repeated once per code granted."""

    def granted_codes(self, sets: Mapping[int, CodeSet]) -> GrantedCodes:
        """Return the number of granted codes and the limit per user, by set id.

        Raises `BadRequest` for a wrong limit or prize.
        """
        if not 1 <= len(self.prizes) <= _MAX_PRIZES:
            raise invalid_member("prizes", f"{len(self.prizes)} indices", f"1 to {_MAX_PRIZES} indices of sets")
        for position, limit in enumerate(self.prize_limits):
            if not 0 <= limit <= _MAX_PRIZE_LIMIT:
                raise invalid_member(f"prize_limits[{position}]", limit, f"within 0 to {_MAX_PRIZE_LIMIT}")
        for position, prize in enumerate(self.prizes):
            if prize not in sets:
                raise no_set(position=position, index=prize, indices=sets)
        granted: GrantedCodes = {}
        for prize, times in Counter(self.prizes).items():
            granted[sets[prize].set_id] = (times, self._prize_limit(prize))
        return granted

    def _prize_limit(self, prize: int) -> int:
        """Return how many codes of a set a user may have: the entry at its index, or at its position in `prizes`."""
        for place in (prize, self.prizes.index(prize)):
            if place < len(self.prize_limits):
                return self.prize_limits[place]
        return 1


def pool_key(client_id: str, index: int) -> Key:
    """Return the key of the pool of the set at an index."""
    return Key("codes", client_id, str(index))


def pool_keys(client_id: str) -> list[Key]:
    """Return the keys of the pools of all possible sets, in index order."""
    return [pool_key(client_id, index) for index in range(MAX_SETS)]


def roster_key(client_id: str, name: str) -> Key:
    """Return the key of the roster of one `mark_*` call."""
    return Key("marked", client_id, name)


def decode_grants(notes: Iterable[bytes]) -> list[GrantedCodes]:
    """Return the grants of rosters with these notes."""
    return [msgspec.json.decode(note, type=GrantedCodes) for note in notes if note]


def max_codes(set_id: str, grants: Iterable[GrantedCodes]) -> int:
    """How many codes of a set a user with these grants may have, including those already redeemed (ruling C3)."""
    most = 0
    for grant in grants:
        times, limit = grant.get(set_id, (0, 0))
        most = max(most, min(most + times, limit))
    return most


class PollGrantBody(GrantBody):
    """A grant to the users who voted for `correct` by the cutoff."""

    correct: int
    cutoff_timestamp: int
    """Unix seconds, or milliseconds from 1e11 up; votes at the cutoff count."""

    def is_in_time(self, cast_at: int) -> bool:
        """Whether a vote cast at `cast_at` (ms) is not after the cutoff, in the unit of the cutoff (ruling C4)."""
        is_in_ms = self.cutoff_timestamp >= _FIRST_CUTOFF_IN_MS
        return (cast_at if is_in_ms else cast_at // 1000) <= self.cutoff_timestamp


class Draft(ABC):
    """Data of a call that has no effect yet. If the block raises, it is deleted."""

    def __init__(self) -> None:
        self.abandoned: list[Key] = []
        """What was written before a restart of the call."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            self.restart()
        await self.close()

    @abstractmethod
    def restart(self) -> None:
        """Discard what was read so far, because the body repeats its long member or is refused."""

    @abstractmethod
    async def close(self) -> None:
        """Delete what was abandoned."""


class PendingGrant(Draft):
    """A `mark_*` call in progress. Its users are on a roster, which has no effect until `put_in_effect`."""

    def __init__(self, grants: Grants, caller: Caller) -> None:
        super().__init__()
        self._grants = grants
        self._caller = caller
        self._rosters = grants.rosters
        self._clock = grants.clock
        self._roster = roster_key(caller.client_id, grants.new_id())
        self._set_ids: list[str] = []
        self._users = Counter[tuple[int, ...]]()
        """The number of distinct users, by how many codes of each set they could have before."""
        self._batch = _FIRST_BATCH
        self._most_grants = 1
        """The most grants that a user had so far."""
        self._first_user = ""
        """The first user on the roster; empty for none."""

    async def __aenter__(self) -> Self:
        sets = await self._grants.current_sets(self._caller.client_id)
        self._until = self._grants.expires_at(sets)
        self._set_ids = [each.set_id for each in sets.values()]
        return self

    async def add(self, users: Sequence[str]) -> None:
        """Add users, in any spelling."""
        start = 0
        while start < len(users):
            some = users[start : start + self._batch]
            start += self._batch
            # One spelling of `5` and `U5`, so that a user in both counts once.
            opaque = [opaque_id_of(user) if user.isdigit() else user for user in some]
            await self._add(list(dict.fromkeys(opaque)))

    async def _add(self, users: list[str]) -> None:
        now = self._clock.now()
        notes: dict[str, list[bytes]] = {user: [] for user in users}
        for roster in await self._rosters.listing(self._roster, users, now=now):
            for user in roster.members:
                if roster.name == self._roster.name:
                    notes.pop(user, None)
                elif user in notes:
                    notes[user].append(roster.note)
        await self._rosters.add_members(self._roster, users, now=now, expires_at=self._until)
        self._first_user = self._first_user or users[0]
        for before, count in Counter(map(tuple, notes.values())).items():
            self._most_grants = max(self._most_grants, len(before))
            grants = decode_grants(before)
            self._users[tuple(max_codes(set_id, grants) for set_id in self._set_ids)] += count
        self._batch = max(1, min(_MAX_BATCH, _MAX_LOOKUPS // self._most_grants))

    def restart(self) -> None:
        self.abandoned.append(self._roster)
        self._roster = self._roster._replace(name=self._grants.new_id())
        self._first_user = ""
        self._users.clear()

    async def put_in_effect(self, body: GrantBody) -> tuple[int, int]:
        """Grant the codes to all users of the call at once.

        Return the number of distinct users that the call names, and how many of them may redeem more codes than before.
        Raises `BadRequest` for an unknown prize, and `Unavailable` if a reset or a load removed users of the call.
        """
        client_id, now = self._caller.client_id, self._clock.now()
        sets = await self._grants.current_sets(client_id)
        granted = body.granted_codes(sets)
        if self._users:
            until = self._grants.expires_at(sets)
            # A reset or a load removes the whole roster, so one user stands for all.
            listed = await self._rosters.listing(self._roster, [self._first_user], now=now)
            is_whole = self._roster.name in [each.name for each in listed]
            note = json_codec.encode(granted)
            if not is_whole or not await self._rosters.annotate(self._roster, note, now=now, expires_at=until):
                raise users_removed()
            sets |= await self._grants.current_sets(client_id)
            latest = max(each.until for each in sets.values())
            if latest > until:  # a PUT meanwhile may have extended the other grants only
                await self._rosters.add_members(self._roster, [], now=now, expires_at=latest)
        gained = 0
        for before, count in self._users.items():
            had = dict(zip(self._set_ids, before, strict=True))
            if any(limit > had.get(set_id, 0) for set_id, (_, limit) in granted.items()):
                gained += count
        users = self._users.total()
        audit("users marked for codes", self._caller, users=users, sets=len(body.prizes))
        return users, gained

    async def close(self) -> None:
        if self.abandoned:
            await self._rosters.drop(self.abandoned, now=self._clock.now())


@dataclass(eq=False, repr=False)
class Grants:
    """The grants of all extensions: rosters with a note. They expire with the last set of their extension."""

    _pools: Pools
    rosters: Rosters
    clock: Clock
    _directory: Directory
    new_id: NewId

    async def current_sets(self, client_id: str) -> dict[int, CodeSet]:
        """Return the present sets of an extension by index, in ascending order."""
        return decode_sets(await self._pools.stocks(pool_keys(client_id), now=self.clock.now()))

    async def grants_to(self, caller: Caller) -> list[GrantedCodes]:
        """Return the grants that apply to the caller, oldest first."""
        names = sorted(await self._directory.ids_of_caller(caller))
        rosters = await self.rosters.listing(roster_key(caller.client_id, ""), names, now=self.clock.now())
        return decode_grants(roster.note for roster in rosters)

    async def renew_grants(self, client_id: str) -> None:
        """Delete the grants whose sets have all ended, and extend the others to the expiry of the last set."""
        async for page in self.rosters.all(roster_key(client_id, ""), now=self.clock.now()):
            # Read after the page, so that the page has no grants of newer sets.
            sets, now = await self.current_sets(client_id), self.clock.now()
            alive = {each.set_id for each in sets.values()}
            live: list[Key] = []
            ended: list[Key] = []
            for name, note in page.items():
                if note:
                    has_ended = alive.isdisjoint(msgspec.json.decode(note, type=GrantedCodes))
                    (ended if has_ended else live).append(roster_key(client_id, name))
            await self.rosters.drop(ended, now=now)
            until = self.expires_at(sets)
            renewals = [self.rosters.add_members(key, [], now=now, expires_at=until) for key in live]
            await asyncio.gather(*renewals)

    def expires_at(self, sets: Mapping[int, CodeSet]) -> int:
        """Return when grants expire, in Unix ms: with the last set, even if the clock was set back since its PUT."""
        ends = [each.until for each in sets.values()]
        return max([self.clock.now() + LIFETIME, *ends])


def decode_sets(stocks: Mapping[Key, Stock]) -> dict[int, CodeSet]:
    """Return the stored sets by their index, in ascending order."""
    notes = {int(key.name): stock.note for key, stock in stocks.items()}
    return {index: msgspec.json.decode(notes[index], type=CodeSet) for index in sorted(notes)}


def _check_pool(record: PoolRecord) -> None:
    if record.key.name not in _SET_INDICES:
        raise wrong("key", f"{record.key.name[:40]!r} is not the index of a set (0 to {MAX_SETS - 1})")
    if record.source is not None:
        decoded(record.note, CodeSet, "note")


def _check_roster(record: RosterRecord) -> None:
    if record.note:
        decoded(record.note, GrantedCodes, "note")


def _check_items(record: ListItemsRecord) -> None:
    for position, code in enumerate(record.items):
        _check_code(f"items[{position}]", code)


def _check_code(name: str, code: str) -> None:
    if not 1 <= len(code) <= MAX_CODE_LENGTH:
        raise wrong(name, f"has {len(code)} characters; a code has 1 to {MAX_CODE_LENGTH}")
    if not code.isprintable():
        raise wrong(name, "has unprintable characters")


_SET_INDICES = frozenset(map(str, range(MAX_SETS)))
STORED = (
    Stored(PoolRecord, "codes", _check_pool),
    Stored(ListRecord, "code_list", accept_any),
    Stored(ListItemsRecord, "code_list", _check_items),
    Stored(HandedRecord, "codes", lambda record: _check_code("item", record.item)),
    Stored(SpentRecord, "codes", accept_any),
    Stored(RosterRecord, "marked", _check_roster),
    Stored(MemberRecord, "marked", accept_any),
)
