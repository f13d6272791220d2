"""The reward code service: uploads, grants and redemption. Each code is handed out at most once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from emulator.callers import Caller, opaque_id_of
from emulator.clock import Clock
from emulator.engines.base import Documents, Key
from emulator.engines.pools import Count, Holding, Pools, Rosters, Stock
from emulator.errors import BadRequest
from emulator.features.codes.duplicates import Duplicates
from emulator.features.codes.rules import (
    LIFETIME,
    MAX_ERRORS,
    MAX_SETS,
    Allowances,
    CodeGrant,
    CodeSet,
    GrantBody,
    NamesBody,
    PollGrantBody,
    ValidationErrors,
    allowances,
    check_codes,
    checked_indices,
    gains,
    grants_key,
    is_in_time,
    list_key,
    live_grants,
    max_codes,
    pool_key,
    pool_keys,
    prizes_by_set,
    roster_key,
)
from emulator.ids import NewId, token_id
from emulator.observability.audit import audit
from emulator.wire import json_codec

_ROSTER_BATCH = 1_000
_MAX_LOOKUPS = 20_000
"""Pairs of a user and a roster that one engine operation looks up."""
_NOTHING = Holding((), 0)


class Voters(Protocol):
    """The part of the poll service that grants need."""

    def voters(
        self, caller: Caller, channel: str | None, poll_id: str, value: int
    ) -> AsyncIterator[Sequence[tuple[str, int]]]:
        """Pages of users whose latest vote is `value`, each with the Unix ms of that vote."""


class Users(Protocol):
    """The directory of users."""

    async def names(self, caller: Caller) -> set[str]:
        """Return all ids under which a list of users may contain the caller."""


class Redemption(NamedTuple):
    """The result of a redemption."""

    code: str | None
    """`None` if the user is not eligible or the set has no codes left."""
    all_codes: tuple[str, ...]
    """All codes of the set that the user holds, in order."""


class Upload:
    """A PUT in progress. Its codes go to lists that no set uses until `CodeSets.define`. `close` must be called."""

    def __init__(self, caller: Caller, new_id: NewId) -> None:
        self.caller = caller
        self.client_id = caller.client_id
        self._new_id = new_id
        self.errors = ValidationErrors()
        self.duplicates = Duplicates()
        self._lists: dict[int, str] = {}
        self.size = 0
        """The number of its codes."""

    def close(self) -> None:
        """Delete temporary files."""
        self.duplicates.close()

    def list_of(self, array: int) -> Key:
        """The list for the codes of `codes[array]`."""
        return list_key(self.client_id, self._lists.setdefault(array, self._new_id()))

    @property
    def lists(self) -> list[Key]:
        return [list_key(self.client_id, name) for name in self._lists.values()]

    def restart(self) -> None:
        """Forget the codes read so far, because the body repeats the member `codes`."""
        self._lists.clear()
        self.size = 0
        self.errors = ValidationErrors()
        self.duplicates.close()
        self.duplicates = Duplicates()


class PendingGrant:
    """A `mark_*` call in progress. Its users go to a roster that has no effect until `CodeSets.grant`."""

    def __init__(self, caller: Caller, new_id: NewId) -> None:
        self.caller = caller
        self._new_id = new_id
        self.roster = new_id()
        self.until: int | None = None
        """When the roster expires, in Unix ms; set when the first users are added."""
        self.earlier: list[CodeGrant] = []
        """The grants in effect when the first users are added."""
        self.users: Counter[Allowances] = Counter()
        """The number of distinct users, by what they were granted earlier."""

    def restart(self) -> None:
        """Forget the users read so far, because the body repeats the member `users`."""
        self.roster = self._new_id()
        self.users.clear()


class Marked(NamedTuple):
    """The outcome of a `mark_*` call."""

    users: int
    """The distinct users that the call names."""
    gained: int
    """How many of them may redeem more codes than before."""


class CodeSets:
    """The code sets of all extensions. A set belongs to its extension, not to a channel."""

    def __init__(
        self,
        pools: Pools,
        rosters: Rosters,
        documents: Documents,
        clock: Clock,
        polls: Voters,
        users: Users,
        new_id: NewId = token_id,
    ) -> None:
        self._pools = pools
        self._rosters = rosters
        self._documents = documents
        self._clock = clock
        self._polls = polls
        self._users = users
        self._new_id = new_id

    def new_upload(self, caller: Caller) -> Upload:
        """Begin a PUT."""
        return Upload(caller, self._new_id)

    def new_grant(self, caller: Caller) -> PendingGrant:
        """Begin a `mark_*` call."""
        return PendingGrant(caller, self._new_id)

    async def add_codes(self, upload: Upload, array: int, at: int, codes: list[Any]) -> None:
        """Add `codes[array][at:]` of the body to an upload. Errors are raised by `define`, or at the 20th."""
        check_codes(upload.errors, array, at, codes)
        if not upload.errors and array < MAX_SETS:
            upload.duplicates.add((array, at), codes)
            upload.size += len(codes)
            now = self._clock.now()
            await self._pools.fill(upload.list_of(array), codes, now=now, expires_at=now + LIFETIME)

    async def define(self, upload: Upload, body: NamesBody, arrays: int) -> None:
        """Put all uploaded sets into use; raises `BadRequest` and changes nothing if any is invalid (ruling C2)."""
        indices = checked_indices(upload.errors, body, arrays)
        upload.errors.check()
        for pair in upload.duplicates.find(MAX_ERRORS):
            if pair is None:
                await asyncio.sleep(0)
            else:
                (one, first), (other, second) = pair
                upload.errors.add(f"codes[{one}][{first}] and codes[{other}][{second}]: are the same code")
        upload.errors.check()
        keys = pool_keys(upload.client_id)
        now = self._clock.now()
        until = now + LIFETIME
        new = {index: CodeSet(name, self._new_id(), until) for index, name in zip(indices, body.names, strict=True)}
        sources = {index: upload.list_of(array) for array, index in enumerate(indices)}

        def change(live: Mapping[Key, Stock]) -> Mapping[Key, Stock]:
            current = _sets_of(live)
            for index, code_set in new.items():
                code_set.set_id = current[index].set_id if index in current else code_set.set_id
            others = {each.name: index for index, each in current.items() if index not in new}
            for position, name in enumerate(body.names):
                if name in others:
                    raise BadRequest("Invalid codes", f"names[{position}]: the set at {others[name]} has this name")
            return {
                pool_key(upload.client_id, index): Stock(sources[index], json_codec.encode(code_set))
                for index, code_set in new.items()
            }

        await self._pools.assign(keys, change, now=now, expires_at=until)
        audit("codes replaced", upload.caller, sets=len(new), codes=upload.size)
        await self._extend_grants(upload.client_id)

    async def discard(self, upload: Upload) -> None:
        """Delete the lists of a failed upload."""
        await self._pools.discard(upload.lists, now=self._clock.now())

    async def list_sets(self, caller: Caller) -> dict[int, tuple[str, Count]]:
        """Return the name and the progress of each active set, in index order."""
        sets = await self._sets(caller.client_id)
        counts = await self._pools.counts(pool_keys(caller.client_id), now=self._clock.now())
        progress = {int(key.name): count for key, count in counts.items()}
        return {index: (each.name, progress[index]) for index, each in sets.items() if index in progress}

    async def clear(self, caller: Caller) -> list[int]:
        """Delete all sets and all eligibility; returns how many codes each set had handed out (ruling C6)."""
        now = self._clock.now()
        handed_out = await self._pools.drop(pool_keys(caller.client_id), now=now)
        if handed_out:
            audit("codes removed", caller, sets=len(handed_out))
        grants = await self._grants(caller.client_id)
        await self._documents.drop([grants_key(caller.client_id)], now=now)
        await self._rosters.drop([roster_key(caller.client_id, grant.roster) for grant in grants], now=now)
        return [handed_out[pool] for pool in pool_keys(caller.client_id) if pool in handed_out]

    async def mark_from_poll(self, caller: Caller, channel: str | None, poll_id: str, body: PollGrantBody) -> Marked:
        """Grant prizes to all users whose latest vote is `correct` and was cast by the cutoff; all or none."""
        prizes_by_set(body, await self._sets(caller.client_id))
        grant = self.new_grant(caller)
        async for page in self._polls.voters(caller, channel, poll_id, body.correct):
            users = [user for user, cast_at in page if is_in_time(cast_at, body.cutoff_timestamp)]
            await self.add_users(grant, users)
        return await self.grant(grant, body)

    async def add_users(self, grant: PendingGrant, users: Sequence[str]) -> None:
        client_id = grant.caller.client_id
        if grant.until is None:
            sets = await self._sets(client_id)
            grant.until = self._eligible_until(sets)
            grant.earlier = live_grants(await self._grants(client_id), sets)
        key, step = roster_key(client_id, grant.roster), _ROSTER_BATCH
        if grant.earlier:
            step = max(1, min(step, _MAX_LOOKUPS // len(grant.earlier)))
        for start in range(0, len(users), step):
            named = users[start : start + step]
            # One spelling of `5` and `U5`, so that a user in both counts once.
            batch = dict.fromkeys(opaque_id_of(user) if user.isdigit() else user for user in named)
            now = self._clock.now()
            if grant.earlier:
                rosters = await self._rosters.listing(key, list(batch), now=now)
                new = [user for user in batch if grant.roster not in rosters.get(user, ())]
                for on, count in Counter(frozenset(rosters.get(user, ())) for user in new).items():
                    grant.users[allowances([each for each in grant.earlier if each.roster in on])] += count
            added = await self._rosters.add_members(key, list(batch), now=now, expires_at=grant.until)
            if not grant.earlier:
                grant.users[()] += added

    async def grant(self, grant: PendingGrant, body: GrantBody) -> Marked:
        """Put a pending grant into effect for all its users at once. Raises `BadRequest` for an unknown prize."""
        client_id = grant.caller.client_id
        sets = await self._sets(client_id)
        new = CodeGrant(grant.roster, prizes_by_set(body, sets))
        key = grants_key(client_id)

        def add(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            return {key: json_codec.encode([*live_grants(_grants_in(found.get(key)), sets), new])}

        await self._documents.update([key], add, now=self._clock.now(), expires_at=self._eligible_until(sets))
        gained = sum(count for before, count in grant.users.items() if gains(before, new))
        audit("users marked for codes", grant.caller, users=grant.users.total(), sets=len(body.prizes))
        return Marked(grant.users.total(), gained)

    async def eligibility(self, caller: Caller) -> list[int]:
        """The number of codes of each set that the caller may still redeem, up to the highest index in use."""
        sets = await self._sets(caller.client_id)
        grants = await self._grants_to(caller)
        held = await self._held(caller)
        return [
            max(0, max_codes(sets[index].set_id, grants) - held.get(index, _NOTHING).current) if index in sets else 0
            for index in range(max(sets, default=-1) + 1)
        ]

    async def redeemed(self, caller: Caller) -> list[list[str]]:
        """The codes of each set that the caller has redeemed, up to the highest index in use or redeemed from."""
        sets = await self._sets(caller.client_id)
        held = await self._held(caller)
        return [list(held.get(index, _NOTHING).items) for index in range(max([*sets, *held], default=-1) + 1)]

    async def redeem(self, caller: Caller, index: int) -> Redemption:
        """Redeem one code of the set at `index`; raises `BadRequest` if `index` is not within 0 to 9."""
        if not 0 <= index < MAX_SETS:
            raise BadRequest("Unknown prize", f"prize: {index} is not within 0 to {MAX_SETS - 1}")
        key = pool_key(caller.client_id, index)
        code, tried = None, None
        while (stock := await self._stock(key)) is not None and code is None and stock.source != tried:
            tried = stock.source  # a concurrent PUT or DELETE changes the source; then try again
            set_id = msgspec.json.decode(stock.note, type=CodeSet).set_id
            most = max_codes(set_id, await self._grants_to(caller))
            if most:
                now = self._clock.now()
                code = await self._pools.draw(key, caller.opaque_id, most=most, now=now, source=stock.source)
        held = await self._held(caller)
        return Redemption(code, held.get(index, _NOTHING).items)

    async def _stock(self, key: Key) -> Stock | None:
        return (await self._pools.stocks([key], now=self._clock.now())).get(key)

    async def _sets(self, client_id: str) -> dict[int, CodeSet]:
        return _sets_of(await self._pools.stocks(pool_keys(client_id), now=self._clock.now()))

    async def _held(self, caller: Caller) -> dict[int, Holding]:
        held = await self._pools.held(pool_keys(caller.client_id), caller.opaque_id, now=self._clock.now())
        return {int(key.name): holding for key, holding in held.items()}

    async def _grants(self, client_id: str) -> list[CodeGrant]:
        key = grants_key(client_id)
        return _grants_in((await self._documents.read([key], now=self._clock.now())).get(key))

    async def _grants_to(self, caller: Caller) -> list[CodeGrant]:
        """The grants to the caller, oldest first."""
        grants = await self._grants(caller.client_id)
        if not grants:
            return []
        names = sorted(await self._users.names(caller))
        rosters = await self._rosters.listing(roster_key(caller.client_id, ""), names, now=self._clock.now())
        on = {roster for each in rosters.values() for roster in each}
        return [grant for grant in grants if grant.roster in on]

    async def _extend_grants(self, client_id: str) -> None:
        """Extend eligibility to the expiry of the sets, which a PUT has moved."""
        key = grants_key(client_id)
        now, until = self._clock.now(), self._eligible_until(await self._sets(client_id))
        written = await self._documents.update([key], lambda found: found, now=now, expires_at=until)
        for grant in _grants_in(written.get(key)):
            await self._rosters.add_members(roster_key(client_id, grant.roster), [], now=now, expires_at=until)

    def _eligible_until(self, sets: Mapping[int, CodeSet]) -> int:
        """The Unix ms at which eligibility expires: with the last set, even if the clock was set back since its PUT."""
        return max([self._clock.now() + LIFETIME, *(each.until for each in sets.values())])


def _sets_of(stocks: Mapping[Key, Stock]) -> dict[int, CodeSet]:
    """The sets by index, in index order."""
    sets = {int(key.name): msgspec.json.decode(stock.note, type=CodeSet) for key, stock in stocks.items()}
    return dict(sorted(sets.items()))


def _grants_in(text: bytes | None) -> list[CodeGrant]:
    return [] if text is None else msgspec.json.decode(text, type=list[CodeGrant])
