"""Everything the service promises about reward codes: none is lost, and none is given twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from emulator.callers import Caller
from emulator.clock import Clock
from emulator.engines.base import Documents, Key
from emulator.engines.pools import Holding, Pools, Rosters, Stock
from emulator.errors import BadRequest
from emulator.features.codes.rules import (
    LIFETIME,
    MOST_SETS,
    CodeGrant,
    CodeSet,
    GrantBody,
    NamesBody,
    PollGrantBody,
    ValidationErrors,
    allowance,
    check_codes,
    checked_indices,
    granted,
    is_in_time,
    list_key,
    marks_key,
    pool_key,
    pool_keys,
    roster_key,
)
from emulator.ids import token_id as new_id
from emulator.wire import json_codec

_ENLISTED_AT_ONCE = 1_000
_NOTHING = Holding((), 0)


class Voters(Protocol):
    """Who voted for what, as far as rewards need it."""

    def voters(
        self, caller: Caller, channel: str | None, poll_id: str, value: int
    ) -> AsyncIterator[Sequence[tuple[str, int]]]:
        """Those whose latest vote in a poll is `value`, and when each cast it (ms), in pages."""
        ...


class ManyCodes(Protocol):
    """Codes as they come in: which array, the position of the first, and some of them."""

    @property
    def array(self) -> int: ...
    @property
    def at(self) -> int: ...
    @property
    def items(self) -> list[Any]: ...


class Redemption(NamedTuple):
    """What a redemption gave."""

    code: str | None
    """`None` without eligibility, or when the set is empty."""
    all_codes: tuple[str, ...]
    """All that the user was given of that set, in order."""


class Upload:
    """A PUT under way. Its codes go to lists that nobody hands out from before `CodeSets.define`."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.faults = ValidationErrors()
        self._lists: dict[int, str] = {}

    def list_of(self, array: int) -> Key:
        """Where the codes of an array go."""
        return list_key(self.client_id, self._lists.setdefault(array, new_id()))

    @property
    def lists(self) -> list[Key]:
        """Where codes went."""
        return [list_key(self.client_id, name) for name in self._lists.values()]

    def restart(self) -> None:
        """What came so far does not count: the member came twice."""
        self._lists.clear()
        self.faults = ValidationErrors()


class Marking:
    """A `mark_*` under way. Its users go to a roster that nobody looks at before `CodeSets.mark`."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.roster = new_id()
        self.until: int | None = None
        """When the roster ends, once that is known."""

    def restart(self) -> None:
        """What came so far does not count: the member came twice."""
        self.roster = new_id()


class CodeSets:
    """Sets of codes of an extension. They are the extension's, whatever the channel."""

    def __init__(self, pools: Pools, rosters: Rosters, documents: Documents, clock: Clock, polls: Voters) -> None:
        self._pools = pools
        self._rosters = rosters
        self._documents = documents
        self._clock = clock
        self._polls = polls

    async def add_codes(self, upload: Upload, codes: ManyCodes) -> None:
        """Take some codes of an upload. What is wrong with them is kept for `define`."""
        check_codes(upload.faults, codes.array, codes.at, codes.items)
        if not upload.faults and codes.array < MOST_SETS:
            now = self._clock.now()
            await self._pools.fill(upload.list_of(codes.array), codes.items, now=now, expires_at=now + LIFETIME)

    async def define(self, upload: Upload, body: NamesBody, arrays: int) -> None:
        """Have the uploaded sets take their places: all of them or, with a `BadRequest`, none (ruling C2)."""
        indices = checked_indices(upload.faults, body, arrays)
        upload.faults.check()
        keys = pool_keys(upload.client_id)
        now = self._clock.now()
        until = now + LIFETIME
        fresh = {index: CodeSet(name, new_id(), until) for index, name in zip(indices, body.names, strict=True)}
        sources = {index: upload.list_of(array) for array, index in enumerate(indices)}

        def change(live: Mapping[Key, Stock]) -> Mapping[Key, Stock]:
            kept = _sets_of(live)
            for index, code_set in fresh.items():
                code_set.set_id = kept[index].set_id if index in kept else code_set.set_id
            others = {each.name: index for index, each in kept.items() if index not in fresh}
            for position, name in enumerate(body.names):
                if name in others:
                    raise BadRequest("Invalid codes", f"names[{position}]: set {others[name]} has that name")
            return {
                pool_key(upload.client_id, index): Stock(sources[index], json_codec.encode(code_set))
                for index, code_set in fresh.items()
            }

        await self._pools.assign(keys, change, now=now, expires_at=until)
        await self._keep_marks(upload.client_id)

    async def abandon(self, upload: Upload) -> None:
        """Forget an upload that came to nothing."""
        await self._pools.discard(upload.lists, now=self._clock.now())

    async def names(self, caller: Caller) -> dict[int, str]:
        """The active sets' names by index."""
        return {index: code_set.name for index, code_set in (await self._sets(caller.client_id)).items()}

    async def clear(self, caller: Caller) -> list[int]:
        """End all sets and all eligibility; how many codes each had handed out, in index order (ruling C6)."""
        now = self._clock.now()
        handed_out = await self._pools.drop(pool_keys(caller.client_id), now=now)
        key = marks_key(caller.client_id)
        marks = await self._marks(caller.client_id)
        await self._documents.drop([key], now=now)
        await self._rosters.drop([roster_key(caller.client_id, mark.roster) for mark in marks], now=now)
        return [handed_out[pool] for pool in pool_keys(caller.client_id) if pool in handed_out]

    async def mark_from_poll(self, caller: Caller, channel: str | None, poll_id: str, body: PollGrantBody) -> None:
        """Grant prizes to all whose latest vote is the correct one and came in time; all of them or none."""
        granted(body, await self._sets(caller.client_id))
        marking = Marking(caller)
        async for page in self._polls.voters(caller, channel, poll_id, body.correct):
            users = [user for user, cast_at in page if is_in_time(cast_at, body.cutoff_timestamp)]
            await self.add_members(marking, users)
        await self.mark(marking, body)

    async def add_members(self, marking: Marking, users: Sequence[str]) -> None:
        """Note users who are to be granted something by `mark`."""
        if marking.until is None:
            marking.until = self._eligible_until(await self._sets(marking.caller.client_id))
        for start in range(0, len(users), _ENLISTED_AT_ONCE):
            some = users[start : start + _ENLISTED_AT_ONCE]
            key = roster_key(marking.caller.client_id, marking.roster)
            await self._rosters.add_members(key, some, now=self._clock.now(), expires_at=marking.until)

    async def mark(self, marking: Marking, body: GrantBody) -> None:
        """Grant prizes to everybody enlisted, from this instant on; raises `BadRequest` for an unknown prize."""
        client_id = marking.caller.client_id
        sets = await self._sets(client_id)
        mark = CodeGrant(marking.roster, granted(body, sets))
        key, alive = marks_key(client_id), {each.set_id for each in sets.values()}

        def add(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            marks = [each for each in _marks_of(found.get(key)) if not alive.isdisjoint(each.granted)]
            return {key: json_codec.encode([*marks, mark])}

        await self._documents.update([key], add, now=self._clock.now(), expires_at=self._eligible_until(sets))

    async def eligibility(self, caller: Caller) -> list[int]:
        """How many codes of each set the caller may still redeem, to the highest index in use."""
        sets = await self._sets(caller.client_id)
        marks = await self._marks_on(caller)
        held = await self._held(caller)
        return [
            max(0, allowance(sets[index].set_id, marks) - held.get(index, _NOTHING).current) if index in sets else 0
            for index in range(max(sets, default=-1) + 1)
        ]

    async def redeemed(self, caller: Caller) -> list[list[str]]:
        """The codes that the caller was given of each set, to the highest index in use or held."""
        sets = await self._sets(caller.client_id)
        held = await self._held(caller)
        return [list(held.get(index, _NOTHING).items) for index in range(max([*sets, *held], default=-1) + 1)]

    async def redeem(self, caller: Caller, index: int) -> Redemption:
        """Exchange one eligibility for one code; raises `BadRequest` for an index that no set can have."""
        if not 0 <= index < MOST_SETS:
            raise BadRequest("Unknown prize", f"prize: {index} is not within 0 to {MOST_SETS - 1}")
        key = pool_key(caller.client_id, index)
        code, tried = None, None
        while (stock := await self._stock(key)) is not None and code is None and stock.source != tried:
            tried = stock.source  # when another PUT or DELETE was faster, what it left is looked at anew
            set_id = msgspec.json.decode(stock.note, type=CodeSet).set_id
            most = allowance(set_id, await self._marks_on(caller))
            if most:
                now = self._clock.now()
                code = await self._pools.draw(key, caller.identity, most=most, now=now, source=stock.source)
        held = await self._held(caller)
        return Redemption(code, held.get(index, _NOTHING).items)

    async def _stock(self, key: Key) -> Stock | None:
        return (await self._pools.stocks([key], now=self._clock.now())).get(key)

    async def _sets(self, client_id: str) -> dict[int, CodeSet]:
        return _sets_of(await self._pools.stocks(pool_keys(client_id), now=self._clock.now()))

    async def _held(self, caller: Caller) -> dict[int, Holding]:
        held = await self._pools.held(pool_keys(caller.client_id), caller.identity, now=self._clock.now())
        return {int(key.name): holding for key, holding in held.items()}

    async def _marks(self, client_id: str) -> list[CodeGrant]:
        key = marks_key(client_id)
        return _marks_of((await self._documents.read([key], now=self._clock.now())).get(key))

    async def _marks_on(self, caller: Caller) -> list[CodeGrant]:
        """The marks that the caller is on, earliest first."""
        marks = await self._marks(caller.client_id)
        if not marks:
            return []
        names = sorted({caller.identity, caller.opaque_id})
        on = await self._rosters.listing(roster_key(caller.client_id, ""), names, now=self._clock.now())
        return [mark for mark in marks if mark.roster in on]

    async def _keep_marks(self, client_id: str) -> None:
        """Have eligibility live as long as the sets, which a PUT has given a longer life."""
        key = marks_key(client_id)
        now, until = self._clock.now(), self._eligible_until(await self._sets(client_id))
        kept = await self._documents.update([key], lambda found: found, now=now, expires_at=until)
        for mark in _marks_of(kept.get(key)):
            await self._rosters.add_members(roster_key(client_id, mark.roster), [], now=now, expires_at=until)

    def _eligible_until(self, sets: Mapping[int, CodeSet]) -> int:
        """When eligibility may end: not before any set, also of one that was put while the clock was further on."""
        return max([self._clock.now() + LIFETIME, *(each.until for each in sets.values())])


def _sets_of(stocks: Mapping[Key, Stock]) -> dict[int, CodeSet]:
    """The sets by index, in that order."""
    sets = {int(key.name): msgspec.json.decode(stock.note, type=CodeSet) for key, stock in stocks.items()}
    return dict(sorted(sets.items()))


def _marks_of(text: bytes | None) -> list[CodeGrant]:
    return [] if text is None else msgspec.json.decode(text, type=list[CodeGrant])
