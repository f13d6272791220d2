"""Reward codes over REST: `codes` and everything below it (rulings C1 to C6)."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from emulator.callers import ANYONE, EXTENSION_WRITERS
from emulator.errors import BadRequest
from emulator.features.codes.rules import GrantBody, NamesBody, PollGrantBody
from emulator.features.codes.service import CodeSets, Marking, Upload
from emulator.web.call import Call
from emulator.web.endpoint import Nothing, Parameter, endpoint
from emulator.web.streaming_json import StreamReader
from emulator.wire import json_codec

_POLL: Final = Parameter("id", "The poll id; `default` when absent or empty.")
_CHANNEL: Final = Parameter("channel_id", "The poll's channel, for roles admin and backend.")


class CodesBody(Struct):
    """Sets of codes, with a name each."""

    codes: list[list[str]]
    names: list[str]
    indices: list[int] | UnsetType = UNSET


class ListGrantBody(GrantBody):
    """Who is to be granted it."""

    users: list[str]


class RedeemBody(Struct):
    """Which prize: the index of a set. Published clients name it in one of three ways."""

    prize: int | UnsetType = UNSET
    all_prizes: int | UnsetType = UNSET
    index: int | UnsetType = UNSET


class SetNames(Struct):
    """The active sets, in the order of their indices."""

    names: list[str]
    indices: list[int]


class Distributed(Struct):
    """How many codes each set had handed out, in the order of their indices."""

    distributed: list[int]


class Eligibility(Struct):
    """Entry i: how many codes of set i may be redeemed."""

    eligible: list[int]


class RedeemedCodes(Struct):
    """Entry i: the codes of set i that were redeemed."""

    redeemed: list[list[str]]


class RedeemedCode(Struct):
    """The code, absent where there is none to have, and all that were redeemed of that set."""

    all_prizes: list[str]
    code: str | UnsetType = UNSET


@endpoint("PUT", "/v1/e/codes", roles=EXTENSION_WRITERS, body=CodesBody, limit="codes", streamed=True)
async def define_codes(code_sets: CodeSets, call: Call) -> Nothing:
    """Define sets of codes: at most 10, of fewer than a million codes of 1 to 63 characters each.

    Sets at other indices stay. A set at an index in use is renamed and gets another list; what was handed out stays
    handed out. All of it or nothing; the body is read as it comes. The first 20 faults are named.
    """
    reader, upload = StreamReader("codes", levels=2), Upload(call.caller.client_id)
    try:
        async for codes in reader.read(call.chunks, upload.restart):
            await code_sets.add_codes(upload, codes)
        await code_sets.define(upload, json_codec.convert(reader.small, NamesBody, inside="body"), reader.arrays)
    except BaseException:
        await code_sets.abandon(upload)
        raise
    return Nothing()


@endpoint("GET", "/v1/e/codes", roles=EXTENSION_WRITERS, answer=SetNames)
async def list_codes(code_sets: CodeSets, call: Call) -> SetNames:
    """List the active sets."""
    names = await code_sets.names(call.caller)
    return SetNames(list(names.values()), list(names))


@endpoint("DELETE", "/v1/e/codes", roles=EXTENSION_WRITERS, answer=Distributed)
async def clear_codes(code_sets: CodeSets, call: Call) -> Distributed:
    """End all sets and all eligibility."""
    return Distributed(await code_sets.clear(call.caller))


@endpoint("POST", "/v1/e/codes/mark_from_poll", roles=EXTENSION_WRITERS, body=PollGrantBody, query=(_POLL, _CHANNEL))
async def mark_from_poll(code_sets: CodeSets, call: Call) -> Nothing:
    """Make those eligible for prizes who voted right."""
    await code_sets.mark_from_poll(call.caller, call.channel, call.id, call.body(PollGrantBody))
    return Nothing()


@endpoint(
    "POST", "/v1/e/codes/mark_from_list", roles=EXTENSION_WRITERS, body=ListGrantBody, limit="user_list", streamed=True
)
async def mark_from_list(code_sets: CodeSets, call: Call) -> Nothing:
    """Make users eligible for prizes; the body is read as it comes."""
    reader, marking = StreamReader("users", levels=1), Marking(call.caller)
    async for users in reader.read(call.chunks, marking.restart):
        await code_sets.add_members(marking, _checked(users.items, users.at))
    await code_sets.mark(marking, json_codec.convert(reader.small, GrantBody, inside="body"))
    return Nothing()


@endpoint("GET", "/v1/e/codes/eligibility", roles=ANYONE, answer=Eligibility)
async def read_eligibility(code_sets: CodeSets, call: Call) -> Eligibility:
    """Read how many codes of each set the caller may redeem."""
    return Eligibility(await code_sets.eligibility(call.caller))


@endpoint("GET", "/v1/e/codes/redeemed", roles=ANYONE, answer=RedeemedCodes)
async def read_redeemed(code_sets: CodeSets, call: Call) -> RedeemedCodes:
    """Read the codes that the caller has redeemed."""
    return RedeemedCodes(await code_sets.redeemed(call.caller))


@endpoint("POST", "/v1/e/codes/redeem", roles=ANYONE, body=RedeemBody, answer=RedeemedCode)
async def redeem_code(code_sets: CodeSets, call: Call) -> RedeemedCode:
    """Exchange one eligibility for one code.

    Without eligibility, or when the set is empty, the answer has no `code`.
    """
    body = call.body(RedeemBody)
    named = [prize for prize in (body.prize, body.all_prizes, body.index) if prize is not UNSET]
    if len(set(named)) != 1:
        raise BadRequest("Invalid body", "prize: the index of one set is needed")
    redemption = await code_sets.redeem(call.caller, named[0])
    return RedeemedCode(list(redemption.all_codes), UNSET if redemption.code is None else redemption.code)


def _checked(users: list[object], at: int) -> list[str]:
    """Ids as they stand in a body; raises `BadRequest` naming the position of one that is none."""
    for position, user in enumerate(users, at):
        if not isinstance(user, str) or not 1 <= len(user) <= 256 or not user.isprintable():
            raise BadRequest("Invalid body", f"users[{position}]: an id is a string of 1 to 256 printable characters")
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
