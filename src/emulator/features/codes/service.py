"""The reward code service: sets, eligibility and redemption. Each code is handed out at most once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.contract.limits import MAX_CODE_LENGTH, MAX_SETS, MAX_USER_LENGTH
from emulator.core.callers import ANYONE, EXTENSION_WRITERS, Caller
from emulator.core.clock import Clock
from emulator.core.ids import NewId, token_id
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import wrong_shape
from emulator.features.codes.grants import (
    LIFETIME,
    STORED,
    CodeSet,
    GrantBody,
    Grants,
    PendingGrant,
    PollGrantBody,
    decode_sets,
    max_codes,
    no_such_prize,
    pool_key,
    pool_keys,
)
from emulator.features.codes.uploads import NamesBody, Upload, codes_removed, name_in_use
from emulator.features.directory import Directory
from emulator.features.kinds import Kind
from emulator.features.votes.service import Polls
from emulator.http.endpoint import Call, Nothing, Parameter, Reply, endpoint, id_of
from emulator.http.streaming_json import LongMemberReader
from emulator.storage.pools import Drawn, Holding, Pools, Rosters, Stock

_NO_CODES = Holding((), 0)
_USER_RULE = f"a string of 1 to {MAX_USER_LENGTH} printable characters"
_POLL = id_of("poll")
_MARKED = Parameter("Extcli-Marked", "The number of users who may redeem more codes than before the call.", "integer")
_USERS = Parameter("Extcli-Users", "The number of distinct users that the call names.", "integer")
_CHANNEL = Parameter("channel_id", "The poll's channel, for roles admin and backend.")


class CodesBody(Struct):
    """Sets of codes and their names."""

    codes: list[list[str]]
    names: list[str]
    indices: list[int] | UnsetType = UNSET


class ListGrantBody(GrantBody):
    """A grant to the listed users."""

    users: list[str]


class RedeemBody(Struct):
    """The index of the set to redeem from. Published clients use one of these three names."""

    prize: int | UnsetType = UNSET
    all_prizes: int | UnsetType = UNSET
    index: int | UnsetType = UNSET


class SetNames(Struct):
    """The active sets in index order."""

    names: list[str]
    indices: list[int]
    distributed: list[int]
    """The codes that each set has handed out."""
    left: list[int]
    """The codes that each set has left. Some may be skipped, because another set handed them out."""


class Distributed(Struct):
    """The number of codes that each set had handed out, in index order."""

    distributed: list[int]


class Eligibility(Struct):
    """Entry i is the number of codes of set i that the caller may redeem."""

    eligible: list[int]


class RedeemedCodes(Struct):
    """Entry i lists the codes of set i that the caller has redeemed."""

    redeemed: list[list[str]]


class RedeemedCode(Struct):
    """The code, absent if none is available, and all codes of the set that the caller has redeemed."""

    all_prizes: list[str]
    code: str | UnsetType = UNSET


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

    @endpoint(
        "PUT",
        "/v1/e/codes",
        roles=EXTENSION_WRITERS,
        body=CodesBody,
        limit="codes",
        streamed=True,
        secrets=frozenset({"*"}),
    )
    async def define_codes(self, call: Call) -> Nothing:
        """Define up to 10 sets of codes, each of fewer than a million codes of 1 to 63 characters.

        The call is atomic and the body is streamed. Sets at other indices are unchanged. A set at an index in use gets
        the new name and list; codes already handed out stay handed out. Codes of the body that were handed out before,
        from any set, are skipped. A code that occurs twice in the body is an error. An error lists the first 20
        problems.
        """
        reader = LongMemberReader("codes", levels=2, longest=MAX_CODE_LENGTH)
        async with self.new_upload(call.caller) as upload:
            async for array, at, codes in reader.read(call.chunks, upload.restart):
                await upload.add(array, at, codes)
            await self.define(upload, json_codec.convert(reader.small, NamesBody, inside="body"), reader.arrays)
        return Nothing()

    def new_upload(self, caller: Caller) -> Upload:
        """Begin an upload of codes by PUT, as a context. If the block raises, the uploaded codes are deleted."""
        return Upload(caller, self._pools, self._clock, self._new_id)

    async def define(self, upload: Upload, body: NamesBody, arrays: int) -> None:
        """Put all uploaded sets into use (ruling C2).

        Raises `BadRequest` and changes nothing if any is invalid, and `Unavailable` if the service was reset meanwhile.
        """
        lists = await upload.list_by_index(body, arrays)
        client_id, now = upload.caller.client_id, self._clock.now()
        until = now + LIFETIME
        counts = await self._pools.counts(pool_keys(client_id), now=now)
        named = zip(lists, body.names, strict=True)
        new = {index: CodeSet(name, self._new_id(), until) for index, name in named}

        def change(live: Mapping[Key, Stock]) -> Mapping[Key, Stock]:
            current = decode_sets(live)
            others = {each.name: index for index, each in current.items() if index not in new}
            for position, name in enumerate(body.names):
                if name in others:
                    raise name_in_use(position=position, index=others[name])
            stocks = {}
            for index, each in new.items():
                key = pool_key(client_id, index)
                stored = each
                if index in current:
                    earlier = counts[key].handed if key in counts else 0
                    stored = msgspec.structs.replace(each, set_id=current[index].set_id, earlier=earlier)
                stocks[key] = Stock(lists[index], json_codec.encode(stored))
            return stocks

        sizes = upload.sizes
        if not await self._pools.assign(pool_keys(client_id), change, now=now, expires_at=until, sizes=sizes):
            raise codes_removed()
        audit("codes replaced", upload.caller, sets=len(new), codes=sum(sizes.values()))
        await self._grants.renew_grants(client_id)

    @endpoint("GET", "/v1/e/codes", roles=EXTENSION_WRITERS, answer=SetNames)
    async def list_codes(self, call: Call) -> SetNames:
        """List the active sets."""
        client_id = call.caller.client_id
        sets = await self._grants.current_sets(client_id)
        counts = await self._pools.counts(pool_keys(client_id), now=self._clock.now())
        pools = {index: pool_key(client_id, index) for index in sets}
        found = {index: counts[key] for index, key in pools.items() if key in counts}
        return SetNames(
            [sets[index].name for index in found],
            list(found),
            [count.handed - sets[index].earlier for index, count in found.items()],
            [count.left for count in found.values()],
        )

    @endpoint("DELETE", "/v1/e/codes", roles=EXTENSION_WRITERS, answer=Distributed)
    async def clear_codes(self, call: Call) -> Distributed:
        """Delete all sets and all eligibility."""
        return Distributed(await self.clear(call.caller))

    async def clear(self, caller: Caller) -> list[int]:
        """Delete all sets and all eligibility; returns how many codes each set had handed out (ruling C6)."""
        sets = await self._grants.current_sets(caller.client_id)
        handed_out = await self._pools.drop(pool_keys(caller.client_id), now=self._clock.now())
        if handed_out:
            audit("codes removed", caller, sets=len(handed_out))
        await self._grants.renew_grants(caller.client_id)
        for index, each in sets.items():
            pool = pool_key(caller.client_id, index)
            if pool in handed_out:
                handed_out[pool] -= each.earlier
        return [handed_out[pool] for pool in pool_keys(caller.client_id) if pool in handed_out]

    @endpoint(
        "POST",
        "/v1/e/codes/mark_from_poll",
        roles=EXTENSION_WRITERS,
        body=PollGrantBody,
        query=(_POLL, _CHANNEL),
        headers=(_USERS, _MARKED),
    )
    async def mark_from_poll(self, call: Call) -> Reply:
        """Make the users who voted for the option `correct` eligible for prizes.

        `cutoff_timestamp` is in seconds if it is below 100,000,000,000, otherwise in milliseconds. Votes at the cutoff
        count. `prizes` and `prize_limits` are as in `mark_from_list`.
        """
        caller, channel, poll_id, body = call.caller, call.channel, call.id, call.body(PollGrantBody)
        body.granted_codes(await self._grants.current_sets(caller.client_id))  # refuses before the votes are read
        async with self.new_grant(caller) as grant:
            async for page in self._polls.voters(caller, channel, poll_id, body.correct):
                await grant.add([user for user, cast_at in page if body.is_in_time(cast_at)])
            return _grant_reply(*await grant.put_in_effect(body))

    @endpoint(
        "POST",
        "/v1/e/codes/mark_from_list",
        roles=EXTENSION_WRITERS,
        body=ListGrantBody,
        headers=(_USERS, _MARKED),
        limit="user_list",
        streamed=True,
    )
    async def mark_from_list(self, call: Call) -> Reply:
        """Make the listed users eligible for prizes. The body is streamed.

        `prizes` lists indices of sets: each user gets a code of each, and two of a set listed twice. `prize_limits[i]`
        is the most codes of set i that a user may have, including redeemed ones. For a set beyond the end of
        `prize_limits`, the limit is the one at the position of the set in `prizes`, otherwise 1.
        """
        reader = LongMemberReader("users", levels=1, longest=MAX_USER_LENGTH)
        async with self.new_grant(call.caller) as grant:
            async for _, at, users in reader.read(call.chunks, grant.restart):
                await grant.add(_checked_users(users, at))
            body = json_codec.convert(reader.small, GrantBody, inside="body")
            return _grant_reply(*await grant.put_in_effect(body))

    def new_grant(self, caller: Caller) -> PendingGrant:
        """Begin a `mark_*` call, as a context. If the block raises, the users that it has recorded are deleted."""
        return PendingGrant(self._grants, caller)

    @endpoint("GET", "/v1/e/codes/eligibility", roles=ANYONE, answer=Eligibility)
    async def read_eligibility(self, call: Call) -> Eligibility:
        """Read how many codes of each set the caller may redeem."""
        return Eligibility(await self.eligibility(call.caller))

    @endpoint("GET", "/v1/e/codes/redeemed", roles=ANYONE, answer=RedeemedCodes, secrets=frozenset({"redeemed"}))
    async def read_redeemed(self, call: Call) -> RedeemedCodes:
        """Read the codes that the caller has redeemed."""
        return RedeemedCodes(await self.redeemed_codes(call.caller))

    @endpoint(
        "POST",
        "/v1/e/codes/redeem",
        roles=ANYONE,
        body=RedeemBody,
        answer=RedeemedCode,
        secrets=frozenset({"code", "all_prizes"}),
    )
    async def redeem_code(self, call: Call) -> RedeemedCode:
        """Redeem one code of a set.

        Send the index of the set as `prize`; the other names are for older clients. The response has no `code` if the
        caller is not eligible or the set has no codes left. `all_prizes` are all codes of the set that the caller
        holds.
        """
        body = call.body(RedeemBody)
        named = [prize for prize in (body.prize, body.all_prizes, body.index) if prize is not UNSET]
        if len(set(named)) != 1:
            raise wrong_shape("prize", needed="the index of one set")
        code, held = await self.redeem(call.caller, named[0])
        return RedeemedCode(list(held), UNSET if code is None else code)

    async def eligibility(self, caller: Caller) -> list[int]:
        """Return the number of codes of each set that the caller may still redeem, up to the highest index in use."""
        sets = await self._grants.current_sets(caller.client_id)
        grants = await self._grants.grants_to(caller)
        held = await self._holdings_of_caller(caller)
        eligible = [0] * (max(sets, default=-1) + 1)
        for index, each in sets.items():
            most = max_codes(each.set_id, grants)
            eligible[index] = max(0, most - held.get(index, _NO_CODES).current)
        return eligible

    async def redeemed_codes(self, caller: Caller) -> list[list[str]]:
        """Return the caller's codes of each set, up to the highest index in use or redeemed from."""
        sets = await self._grants.current_sets(caller.client_id)
        held = await self._holdings_of_caller(caller)
        highest = max([*sets, *held], default=-1)
        return [list(held.get(index, _NO_CODES).items) for index in range(highest + 1)]

    async def redeem(self, caller: Caller, index: int) -> Drawn:
        """Redeem one code of the set at `index`; return it, and all codes that the caller has redeemed from the set.

        The result has no new code if the caller is not eligible or the set has none left. Raises `BadRequest` if
        `index` is not within 0 to 9.
        """
        if not 0 <= index < MAX_SETS:
            raise no_such_prize(index=index, highest=MAX_SETS - 1)
        grants = await self._grants.grants_to(caller)

        def limit(note: bytes) -> int:
            return max_codes(msgspec.json.decode(note, type=CodeSet).set_id, grants)

        key = pool_key(caller.client_id, index)
        return await self._pools.draw(key, caller.opaque_id, limit=limit, now=self._clock.now(), held=True)

    async def _holdings_of_caller(self, caller: Caller) -> dict[int, Holding]:
        held = await self._pools.held(pool_keys(caller.client_id), caller.opaque_id, now=self._clock.now())
        return {int(key.name): holding for key, holding in held.items()}


def _grant_reply(users: int, gained: int) -> Reply:
    of_users = _USERS.name.lower().encode(), b"%d" % users
    of_gained = _MARKED.name.lower().encode(), b"%d" % gained
    return Reply(200, b"{}", more=(of_users, of_gained))


def _checked_users(users: list[object], at: int) -> list[str]:
    """Return consecutive user ids of the body, the first of which is `users[at]`.

    Raises `BadRequest` naming an invalid one.
    """
    for position, user in enumerate(users, at):
        if not isinstance(user, str) or not 1 <= len(user) <= MAX_USER_LENGTH or not user.isprintable():
            raise wrong_shape(f"users[{position}]", needed=_USER_RULE)
    return cast("list[str]", users)


def _set_facts(note: bytes, now: int) -> dict[str, object]:
    found = msgspec.json.decode(note, type=CodeSet)
    return {"name": found.name, "earlier": found.earlier}


CODES = Kind("codes", "the code sets, with how many codes they handed out", ("codes",), LIFETIME, STORED, _set_facts)
