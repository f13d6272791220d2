"""The reward code service: sets, eligibility and redemption. Each code is handed out at most once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from emulator.contract.limits import MAX_SETS
from emulator.core.callers import Caller
from emulator.core.clock import Clock
from emulator.core.ids import NewId, token_id
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.wire import json_codec
from emulator.features.codes.duplicates import Duplicates, Place, pairs_among
from emulator.features.codes.grants import Grants, Marked, PendingGrant, sets_of
from emulator.features.codes.rules import (
    LIFETIME,
    STORED,
    CodeSet,
    GrantBody,
    NamesBody,
    PollGrantBody,
    ValidationErrors,
    check_codes,
    checked_indices,
    codes_removed,
    is_in_time,
    list_key,
    max_codes,
    name_in_use,
    no_such_prize,
    pool_key,
    pool_keys,
    prizes_by_set,
)
from emulator.features.directory import Directory
from emulator.features.votes.service import Polls
from emulator.storage.kinds import Kind, Shape
from emulator.storage.pools import Count, Drawn, Holding, Pools, Rosters, Stock

_MIN_WRITTEN: Final = 5_000
"""Codes of an array that are written at once; fewer at its end. Each write takes a commit."""
_MAX_REPEATED: Final = 1_000
"""Repeated hashes to look at. Two different codes hardly ever have the same hash."""


class Upload:
    """The codes of one PUT, in lists that no set uses until `CodeSets.define`. `close` must be awaited."""

    def __init__(self, caller: Caller, pools: Pools, clock: Clock, new_id: NewId) -> None:
        self.caller = caller
        self._pools = pools
        self._clock = clock
        self._new_id = new_id
        self._errors = ValidationErrors()
        self._duplicates = Duplicates()
        self._lists: dict[int, Key] = {}
        self.sizes: dict[Key, int] = {}
        """The number of codes of each list."""
        self._array = 0
        self._unwritten: list[str] = []
        """The latest codes of the array `_array`."""
        self._abandoned: list[Key] = []

    async def add(self, array: int, at: int, codes: list[Any]) -> None:
        """Add the next codes of an array of the body: `codes[array][at:]`.

        Errors are collected for `list_by_index`; the 20th is raised at once.
        """
        check_codes(self._errors, array, at, codes)
        if not self._errors and array < MAX_SETS:
            self._duplicates.add(codes)
            if array != self._array:
                await self._write()
                self._array = array
            self._unwritten += codes
            if len(self._unwritten) >= _MIN_WRITTEN:
                await self._write()

    def restart(self) -> None:
        """Discard the codes read so far, because the body repeats the member `codes` or is refused."""
        self._duplicates.close()
        self._errors, self._duplicates = ValidationErrors(), Duplicates()
        self._array, self._unwritten = 0, []
        self._abandoned += self._lists.values()
        self._lists.clear()
        self.sizes.clear()

    async def list_by_index(self, body: NamesBody, arrays: int) -> dict[int, Key]:
        """Return the key of the uploaded list of each set, by its index.

        Raises `BadRequest` with the first 20 errors of the whole body.
        """
        indices = checked_indices(self._errors, body, arrays)
        self._errors.check()
        await self._write()
        await self._check_duplicates()
        return {index: self._list_of(array) for array, index in enumerate(indices)}

    async def close(self) -> None:
        """Delete the temporary file, and the lists that were filled before a restart of the upload."""
        self._duplicates.close()
        if self._abandoned:
            await self._pools.discard(self._abandoned, now=self._clock.now())

    async def _write(self) -> None:
        """Append the codes in memory to the list of their array."""
        if self._unwritten:
            codes, self._unwritten = self._unwritten, []
            now, key = self._clock.now(), self._list_of(self._array)
            await self._pools.fill(key, codes, now=now, expires_at=now + LIFETIME)
            self.sizes[key] = self.sizes.get(key, 0) + len(codes)

    async def _check_duplicates(self) -> None:
        """Raise `BadRequest` with the first 20 codes that occur again, if any do."""
        repeated: set[int] = set()
        for found in self._duplicates.repeated_hashes():
            repeated |= found
            if len(repeated) >= _MAX_REPEATED:
                break
            await asyncio.sleep(0)
        places: dict[str, Place] = {}
        for array, key in self._lists.items() if repeated else ():
            at = 0
            while codes := await self._pools.items(key, at, now=self._clock.now()):
                for (one, first), (other, second) in pairs_among(codes, (array, at), repeated, places):
                    self._errors.add(f"codes[{one}][{first}] and codes[{other}][{second}]: are the same code")
                at += len(codes)
                await asyncio.sleep(0)
        self._errors.check()

    def _list_of(self, array: int) -> Key:
        if array not in self._lists:
            self._lists[array] = list_key(self.caller.client_id, self._new_id())
        return self._lists[array]


_NOTHING: Final = Holding((), 0)


@dataclass(eq=False, repr=False)
class CodeSets:
    """The code sets of all extensions. A set belongs to its extension, not to a channel."""

    _pools: Pools
    _rosters: Rosters
    _clock: Clock
    _polls: Polls
    _directory: Directory
    _new_id: NewId = token_id

    def __post_init__(self) -> None:
        self._grants = Grants(self._pools, self._rosters, self._clock, self._directory, self._new_id)

    @asynccontextmanager
    async def new_upload(self, caller: Caller) -> AsyncIterator[Upload]:
        """Begin an upload of codes by PUT. If the block raises, the uploaded codes are deleted."""
        upload = Upload(caller, self._pools, self._clock, self._new_id)
        try:
            yield upload
        except BaseException:
            upload.restart()
            raise
        finally:
            await upload.close()

    async def define(self, upload: Upload, body: NamesBody, arrays: int) -> None:
        """Put all uploaded sets into use (ruling C2).

        Raises `BadRequest` and changes nothing if any is invalid, and `Unavailable` if the service was reset meanwhile.
        """
        lists = await upload.list_by_index(body, arrays)
        client_id, now = upload.caller.client_id, self._clock.now()
        until = now + LIFETIME
        counts = await self._pools.counts(pool_keys(client_id), now=now)
        new = {index: CodeSet(name, self._new_id(), until) for index, name in zip(lists, body.names, strict=True)}

        def change(live: Mapping[Key, Stock]) -> Mapping[Key, Stock]:
            current = sets_of(live)
            others = {each.name: index for index, each in current.items() if index not in new}
            for position, name in enumerate(body.names):
                if name in others:
                    raise name_in_use(position=position, index=others[name])
            stocks = {}
            for index, each in new.items():
                key, set_id = pool_key(client_id, index), current[index].set_id if index in current else each.set_id
                earlier = counts[key].handed if index in current and key in counts else 0
                stocks[key] = Stock(lists[index], json_codec.encode(CodeSet(each.name, set_id, until, earlier)))
            return stocks

        sizes = upload.sizes
        if not await self._pools.assign(pool_keys(client_id), change, now=now, expires_at=until, sizes=sizes):
            raise codes_removed()
        audit("codes replaced", upload.caller, sets=len(new), codes=sum(sizes.values()))
        await self._grants.renew(client_id)

    async def list_sets(self, caller: Caller) -> dict[int, tuple[str, Count]]:
        """Return the name and the progress of each active set, in index order."""
        sets = await self._grants.sets(caller.client_id)
        counts = await self._pools.counts(pool_keys(caller.client_id), now=self._clock.now())
        progress = {int(key.name): count for key, count in counts.items()}
        return {
            index: (each.name, Count(progress[index].handed - each.earlier, progress[index].left))
            for index, each in sets.items()
            if index in progress
        }

    async def clear(self, caller: Caller) -> list[int]:
        """Delete all sets and all eligibility; returns how many codes each set had handed out (ruling C6)."""
        sets = await self._grants.sets(caller.client_id)
        handed_out = await self._pools.drop(pool_keys(caller.client_id), now=self._clock.now())
        if handed_out:
            audit("codes removed", caller, sets=len(handed_out))
        await self._grants.renew(caller.client_id)
        earlier = {pool_key(caller.client_id, index): each.earlier for index, each in sets.items()}
        return [handed_out[pool] - earlier.get(pool, 0) for pool in pool_keys(caller.client_id) if pool in handed_out]

    async def mark_from_poll(self, caller: Caller, channel: str | None, poll_id: str, body: PollGrantBody) -> Marked:
        """Grant prizes to all users who have a vote for `correct` that was cast by the cutoff; all or none."""
        prizes_by_set(body, await self._grants.sets(caller.client_id))
        async with self.new_grant(caller) as grant:
            async for page in self._polls.voters(caller, channel, poll_id, body.correct):
                await grant.add([user for user, cast_at in page if is_in_time(cast_at, body.cutoff_timestamp)])
            return await self.grant(caller, grant, body)

    def new_grant(self, caller: Caller) -> AbstractAsyncContextManager[PendingGrant]:
        """Begin a `mark_*` call. If the block raises, the users that it has recorded are deleted."""
        return self._grants.begin(caller.client_id)

    async def grant(self, caller: Caller, grant: PendingGrant, body: GrantBody) -> Marked:
        """Grant prizes to all users of a `mark_*` call at once. Raises `BadRequest` for an unknown prize."""
        marked = await self._grants.put_in_effect(grant, body)
        audit("users marked for codes", caller, users=marked.users, sets=len(body.prizes))
        return marked

    async def eligibility(self, caller: Caller) -> list[int]:
        """Return the number of codes of each set that the caller may still redeem, up to the highest index in use."""
        sets = await self._grants.sets(caller.client_id)
        grants = await self._grants.of_caller(caller)
        held = await self._holdings_of_caller(caller)
        return [
            max(0, max_codes(sets[index].set_id, grants) - held.get(index, _NOTHING).current) if index in sets else 0
            for index in range(max(sets, default=-1) + 1)
        ]

    async def redeemed_codes(self, caller: Caller) -> list[list[str]]:
        """Return the caller's codes of each set, up to the highest index in use or redeemed from."""
        sets = await self._grants.sets(caller.client_id)
        held = await self._holdings_of_caller(caller)
        return [list(held.get(index, _NOTHING).items) for index in range(max([*sets, *held], default=-1) + 1)]

    async def redeem(self, caller: Caller, index: int) -> Drawn:
        """Redeem one code of the set at `index`; return it, and all codes that the caller has redeemed from the set.

        The result has no new code if the caller is not eligible or the set has none left. Raises `BadRequest` if
        `index` is not within 0 to 9.
        """
        if not 0 <= index < MAX_SETS:
            raise no_such_prize(index=index, highest=MAX_SETS - 1)
        grants = await self._grants.of_caller(caller)

        def limit(note: bytes) -> int:
            return max_codes(msgspec.json.decode(note, type=CodeSet).set_id, grants)

        key = pool_key(caller.client_id, index)
        return await self._pools.draw(key, caller.opaque_id, limit=limit, now=self._clock.now(), held=True)

    async def _holdings_of_caller(self, caller: Caller) -> dict[int, Holding]:
        held = await self._pools.held(pool_keys(caller.client_id), caller.opaque_id, now=self._clock.now())
        return {int(key.name): holding for key, holding in held.items()}


def _name(note: bytes, now: int) -> dict[str, object]:
    found = msgspec.json.decode(note, type=CodeSet)
    return {"name": found.name, "earlier": found.earlier}


CODES: Final = Kind(
    "codes",
    "the code sets, with the codes handed out. Never a code",
    ("codes",),
    Shape.POOLS,
    LIFETIME,
    "codes",
    STORED,
    _name,
)
