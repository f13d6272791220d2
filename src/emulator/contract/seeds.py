"""The format of seeds: the fields that `PUT /_emulator/seed` takes, and the rules between them. No I/O.

A file of a seed has more fields: `extcli.seeds` adds them.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from emulator.contract import limits
from emulator.contract.faults import MAX_FAULTS
from emulator.contract.kinds import (
    USER,
    Field,
    Json,
    ListOf,
    MapOf,
    Report,
    Simple,
    Table,
    Text,
    Whole,
    instant_of,
    one_of,
)
from emulator.contract.names import CLIENT_ID, CLIENT_ID_RULE, GLOBAL, POLL_ID, POLL_ID_RULE, VIEWER_STORES
from emulator.contract.positions import Path

STORES = (
    "extension_state",
    "channel_state",
    *VIEWER_STORES,
    "extension_hidden_state",
    "extension_config",
    "channel_config",
)


_required = partial(Field, required=True)
_FLAG = Simple("true or false", lambda value: isinstance(value, bool))
_INSTANT = Simple('an RFC 3339 time with a zone, from 1970 on, such as "2026-12-24T18:00:00Z"', instant_of)
"""A TOML date and time, or a text in RFC 3339."""
CLIENT = Text(pattern=CLIENT_ID, rule=f"a client id: {CLIENT_ID_RULE}")
CHANNEL = _ID = Text(limits.MAX_ID_LENGTH)
_POLL_ID = Text(pattern=POLL_ID, rule=POLL_ID_RULE)
_VOTE = Whole(limits.LOWEST_VOTE, limits.HIGHEST_VOTE)
_VOTES = Whole(1, limits.MAX_VOTES)
_OPTIONS = ListOf(Text(bytes=limits.MAX_OPTION_BYTES), "options", limits.MAX_OPTIONS, 1)
_DISTINCT = Whole(1, limits.MAX_DISTINCT_OPTIONS)
_CODES = ListOf(Text(limits.MAX_CODE_LENGTH), "codes", limits.MAX_CODES)
_OF_EXTENSION = {"client_id": Field(CLIENT, "the client id; default: the client id of the seed")}
_PLACE = {**_OF_EXTENSION, "channel": Field(CHANNEL, "the channel; default: the channel of the seed")}


class _OneOrMoreVotes:
    """The kind of the votes of a user: a value, or a list of values."""

    allowed = f"{_VOTE.allowed}, or a list of these numbers"

    def check(self, value: object, path: Path, report: Report) -> None:
        kind = ListOf(_VOTE, "values", limits.MAX_VOTES) if isinstance(value, list) else _VOTE
        kind.check(value, path, report)


def _check_poll(poll: dict[str, Any], path: Path, report: Report) -> None:
    """Report times in the wrong order, and the users with more votes than the poll allows."""
    starts, ends = instant_of(poll.get("starts_at")), instant_of(poll.get("ends_at"))
    if starts and ends and starts > ends:
        report((*path, "starts_at"), "must not be after ends_at")
    for user, votes in poll.get("votes", {}).items():
        values = votes if isinstance(votes, list) else [votes]
        numbers = {
            "total_votes_per_user": len(values),
            "votes_per_option": max(Counter(values).values(), default=0),
            "distinct_options_per_user": len(set(values)),
        }
        for name, number in numbers.items():
            if number > (most := poll.get(name, 1)):
                report((*path, "votes", user), f"{number} is more than {name}, which is {most}")
                break


def _check_store(store: dict[str, Any], path: Path, report: Report) -> None:
    """Report a user that is missing, or that the store does not belong to."""
    is_of_user = store["store"] in VIEWER_STORES
    if is_of_user != ("user" in store):
        problem = "missing" if is_of_user else "must be left out"
        report((*path, "user"), f"{problem}; {store['store']} belongs to {'a' if is_of_user else 'no'} user")


_SHARED_PREFIXES = {"polls": GLOBAL, "rankings": GLOBAL, "json_stores": "global"}
"""How ids start that all channels share."""


def _shared_fields(kind: str, table: dict[str, Any]) -> dict[str, None]:
    """Return the fields, each with `None`, that make no difference: all extensions or channels share the record."""
    if kind == "stores":
        is_of_channel = table["store"].startswith("channel_")
        if is_of_channel or table["store"] == "viewer_state":
            return {"client_id": None} if is_of_channel else {}
        return {"channel": None}
    prefix = _SHARED_PREFIXES.get(kind)
    return {"channel": None} if prefix and table["id"].startswith(prefix) else {}


_UNIQUE = (
    *((kind, "id", "client_id", "channel") for kind in ("polls", "rankings", "buffers", "json_stores")),
    ("stores", "store", "client_id", "channel", "user"),
    ("codes", "index", "client_id"),
    ("codes", "name", "client_id"),
    ("links", "channel", "client_id"),
    ("faults", "id"),
)
"""Lists, each with fields that differ between all its tables. Errors name the first field."""


def check_seed(seed: dict[str, Any], path: Path, report: Report) -> None:
    """Report polls, rankings and other records that two tables of a seed describe."""
    for kind, *names in _UNIQUE:
        first_positions: dict[str, int] = {}
        for at, table in enumerate(seed.get(kind, [])):
            whole = seed | table | _shared_fields(kind, table)
            identity = repr([whole.get(name) for name in names])
            if names[0] in whole and (first := first_positions.setdefault(identity, at)) != at:
                report((kind, at, names[0]), f"{kind}[{first}] has the same {names[0]}")


POLL = Table(
    {
        "id": _required(_POLL_ID, "the poll's id; all channels share a poll whose id starts with global-"),
        "prompt": Field(Text(bytes=limits.MAX_PROMPT_BYTES), "the question"),
        "options": Field(_OPTIONS, "the options; a vote for the first has value 0"),
        "user_data": Field(Json(limits.MAX_USER_DATA_BYTES), "your own data"),
        "starts_at": Field(_INSTANT, "when the poll starts"),
        "ends_at": Field(_INSTANT, "when the poll ends; a seed can add votes to an ended poll"),
        "user_id_voting": Field(_FLAG, "whether only users who share their identity can vote"),
        "distinct_options_per_user": Field(_DISTINCT, "the most options that one user may vote for; 1 by default"),
        "total_votes_per_user": Field(_VOTES, "the most votes of one user; 1 by default; if more, votes add up"),
        "votes_per_option": Field(_VOTES, "the most votes of one user for one option; 1 by default"),
        "disabled": Field(_FLAG, "whether the poll refuses votes"),
        "votes": Field(MapOf(_OneOrMoreVotes()), "the votes of each user, cast in this order"),
        **_PLACE,
    },
    _check_poll,
)
RANKING = Table(
    {
        "id": _required(_ID, "the ranking's id; all channels share a ranking whose id starts with global-"),
        "answers": _required(MapOf(Text(bytes=limits.MAX_ANSWER_BYTES)), "the answer of each user, in this order"),
        **_PLACE,
    }
)
ENTRY = Table({"user": _required(USER, "the user who added the entry"), "data": _required(Json(255), "the JSON value")})
BUFFER = Table(
    {
        "id": _required(_ID, "the buffer's id"),
        "entries": _required(ListOf(ENTRY, "buffers.entries"), "the entries, oldest first"),
        **_PLACE,
    }
)
STORE = Table(
    {
        "store": _required(one_of(STORES), "the store"),
        "user": Field(USER, "the store's user, for viewer_state and extension_viewer_state only"),
        "data": _required(Json(limits.MAX_STORE_BYTES, is_object=True), "its content"),
        **_PLACE,
    },
    _check_store,
)
JSON_STORE = Table(
    {
        "id": _required(_ID, "the store's id; all channels share a store whose id starts with global"),
        "data": _required(Json(limits.MAX_JSON_STORE_BYTES, is_object=True), "its content"),
        **_PLACE,
    }
)
CODES = Table(
    {
        "index": _required(Whole(0, limits.MAX_SETS - 1), "the set's index"),
        "name": _required(Text(limits.MAX_SET_NAME_LENGTH), "the set's name"),
        "codes": _required(_CODES, "the codes themselves"),
        "marked": Field(MapOf(Whole(1, 1_000)), "for each user, how many of the codes the user may redeem"),
        **_OF_EXTENSION,
    }
)
LINK = Table(_PLACE)
CLOCK = Table({"at": Field(_INSTANT, "the clock's new time"), "frozen": Field(_FLAG, "whether the clock stands still")})
_FAULT = Simple("a fault, as in the body of POST /_emulator/faults", lambda value: isinstance(value, dict))
SEED = Table(
    {
        "extcli": _required(Whole(1, 1), "the version of this format"),
        "client_id": _required(CLIENT, "the extension's client id"),
        "channel": _required(CHANNEL, "the channel"),
        "clock": Field(CLOCK, "the service's clock; after the set time, the clock runs on unless frozen"),
        "polls": Field(ListOf(POLL, "polls"), "polls: definitions and votes"),
        "rankings": Field(ListOf(RANKING, "rankings"), "rankings: the answers of users"),
        "buffers": Field(ListOf(BUFFER, "buffers"), "buffers of small JSON values"),
        "stores": Field(ListOf(STORE, "stores"), "state and config stores"),
        "json_stores": Field(ListOf(JSON_STORE, "json_stores"), "JSON stores"),
        "codes": Field(ListOf(CODES, "codes"), "sets of reward codes"),
        "links": Field(ListOf(LINK, "links"), "channels that a game is linked to"),
        "faults": Field(ListOf(_FAULT, "faults", MAX_FAULTS), "faults: failures on purpose"),
    },
    check_seed,
)
