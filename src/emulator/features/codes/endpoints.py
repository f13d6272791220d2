"""Reward codes over REST: `codes` and `codes/…` (rulings C1 to C6)."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from emulator.contract.limits import MAX_CODE_LENGTH, MAX_USER_LENGTH
from emulator.core.callers import ANYONE, EXTENSION_WRITERS
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import wrong_shape
from emulator.features.codes.grants import Marked
from emulator.features.codes.rules import GrantBody, NamesBody, PollGrantBody
from emulator.features.codes.service import CodeSets
from emulator.http.endpoint import Call, Header, Nothing, Parameter, WithHeaders, endpoint, id_of
from emulator.http.streaming_json import StreamReader

_USER_RULE: Final = f"a string of 1 to {MAX_USER_LENGTH} printable characters"
_POLL: Final = id_of("poll")
_MARKED: Final = Header(
    "Extcli-Marked", "The number of users who may redeem more codes than before the call.", "integer"
)
_USERS: Final = Header("Extcli-Users", "The number of distinct users that the call names.", "integer")
_CHANNEL: Final = Parameter("channel_id", "The poll's channel, for roles admin and backend.")


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


@endpoint(
    "PUT",
    "/v1/e/codes",
    roles=EXTENSION_WRITERS,
    body=CodesBody,
    limit="codes",
    streamed=True,
    secrets=frozenset({"*"}),
)
async def define_codes(code_sets: CodeSets, call: Call) -> Nothing:
    """Define up to 10 sets of codes, each of fewer than a million codes of 1 to 63 characters.

    The call is atomic and the body is streamed. Sets at other indices are unchanged. A set at an index in use gets the
    new name and list; codes already handed out stay handed out. Codes of the body that were handed out before, from any
    set, are skipped. A code that occurs twice in the body is an error. An error lists the first 20 problems.
    """
    reader = StreamReader("codes", levels=2, longest=MAX_CODE_LENGTH)
    async with code_sets.new_upload(call.caller) as upload:
        async for codes in reader.read(call.chunks, upload.restart):
            await upload.add(codes.array, codes.at, codes.items)
        await code_sets.define(upload, json_codec.convert(reader.small, NamesBody, inside="body"), reader.arrays)
    return Nothing()


@endpoint("GET", "/v1/e/codes", roles=EXTENSION_WRITERS, answer=SetNames)
async def list_codes(code_sets: CodeSets, call: Call) -> SetNames:
    """List the active sets."""
    sets = await code_sets.list_sets(call.caller)
    counts = [count for _, count in sets.values()]
    return SetNames(
        [name for name, _ in sets.values()],
        list(sets),
        [count.handed for count in counts],
        [count.left for count in counts],
    )


@endpoint("DELETE", "/v1/e/codes", roles=EXTENSION_WRITERS, answer=Distributed)
async def clear_codes(code_sets: CodeSets, call: Call) -> Distributed:
    """Delete all sets and all eligibility."""
    return Distributed(await code_sets.clear(call.caller))


@endpoint(
    "POST",
    "/v1/e/codes/mark_from_poll",
    roles=EXTENSION_WRITERS,
    body=PollGrantBody,
    query=(_POLL, _CHANNEL),
    headers=(_USERS, _MARKED),
)
async def mark_from_poll(code_sets: CodeSets, call: Call) -> WithHeaders:
    """Make the users who voted for the option `correct` eligible for prizes.

    `cutoff_timestamp` is in seconds if it is below 100,000,000,000, otherwise in milliseconds. Votes at the cutoff
    count. `prizes` and `prize_limits` are as in `mark_from_list`.
    """
    marked = await code_sets.mark_from_poll(call.caller, call.channel, call.id, call.body(PollGrantBody))
    return _answer(marked)


@endpoint(
    "POST",
    "/v1/e/codes/mark_from_list",
    roles=EXTENSION_WRITERS,
    body=ListGrantBody,
    headers=(_USERS, _MARKED),
    limit="user_list",
    streamed=True,
)
async def mark_from_list(code_sets: CodeSets, call: Call) -> WithHeaders:
    """Make the listed users eligible for prizes. The body is streamed.

    `prizes` lists indices of sets: each user gets a code of each, and two of a set listed twice. `prize_limits[i]` is
    the most codes of set i that a user may have, including redeemed ones. For a set beyond the end of `prize_limits`,
    the limit is the one at the position of the set in `prizes`, otherwise 1.
    """
    reader = StreamReader("users", levels=1, longest=MAX_USER_LENGTH)
    async with code_sets.new_grant(call.caller) as grant:
        async for users in reader.read(call.chunks, grant.restart):
            await grant.add(_checked_users(users.items, users.at))
        body = json_codec.convert(reader.small, GrantBody, inside="body")
        marked = await code_sets.grant(call.caller, grant, body)
    return _answer(marked)


@endpoint("GET", "/v1/e/codes/eligibility", roles=ANYONE, answer=Eligibility)
async def read_eligibility(code_sets: CodeSets, call: Call) -> Eligibility:
    """Read how many codes of each set the caller may redeem."""
    return Eligibility(await code_sets.eligibility(call.caller))


@endpoint("GET", "/v1/e/codes/redeemed", roles=ANYONE, answer=RedeemedCodes, secrets=frozenset({"redeemed"}))
async def read_redeemed(code_sets: CodeSets, call: Call) -> RedeemedCodes:
    """Read the codes that the caller has redeemed."""
    return RedeemedCodes(await code_sets.redeemed_codes(call.caller))


@endpoint(
    "POST",
    "/v1/e/codes/redeem",
    roles=ANYONE,
    body=RedeemBody,
    answer=RedeemedCode,
    secrets=frozenset({"code", "all_prizes"}),
)
async def redeem_code(code_sets: CodeSets, call: Call) -> RedeemedCode:
    """Redeem one code of a set.

    Send the index of the set as `prize`; the other names are for older clients. The response has no `code` if the
    caller is not eligible or the set has no codes left. `all_prizes` are all codes of the set that the caller holds.
    """
    body = call.body(RedeemBody)
    named = [prize for prize in (body.prize, body.all_prizes, body.index) if prize is not UNSET]
    if len(set(named)) != 1:
        raise wrong_shape("prize", needed="the index of one set")
    code, held = await code_sets.redeem(call.caller, named[0])
    return RedeemedCode(list(held), UNSET if code is None else code)


def _answer(marked: Marked) -> WithHeaders:
    return WithHeaders(Nothing(), {_USERS: str(marked.users), _MARKED: str(marked.gained)})


def _checked_users(users: list[object], at: int) -> list[str]:
    """Return consecutive user ids of the body, the first of which is `users[at]`.

    Raises `BadRequest` naming an invalid one.
    """
    for position, user in enumerate(users, at):
        if not isinstance(user, str) or not 1 <= len(user) <= MAX_USER_LENGTH or not user.isprintable():
            raise wrong_shape(f"users[{position}]", needed=_USER_RULE)
    return [user for user in users if isinstance(user, str)]


endpoints: Final = (
    define_codes,
    list_codes,
    clear_codes,
    mark_from_poll,
    mark_from_list,
    read_eligibility,
    read_redeemed,
    redeem_code,
)
