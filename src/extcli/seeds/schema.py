"""What a seed may contain: every field, with its kind and its meaning. The reference is generated from this. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
    ValueKind,
    Whole,
    instant_of,
    one_of,
)
from emulator.contract.limits import (
    HIGHEST,
    LOWEST,
    MAX_ANSWER_BYTES,
    MAX_CODE_LENGTH,
    MAX_CODES,
    MAX_DISTINCT_OPTIONS,
    MAX_ID_LENGTH,
    MAX_JSON_STORE_BYTES,
    MAX_OPTION_BYTES,
    MAX_OPTIONS,
    MAX_PROMPT_BYTES,
    MAX_SET_NAME_LENGTH,
    MAX_SETS,
    MAX_STORE_BYTES,
    MAX_USER_DATA_BYTES,
    MAX_VOTES,
)
from emulator.contract.names import CLIENT_ID, CLIENT_ID_RULE, GLOBAL, POLL_ID, POLL_ID_RULE, VIEWER_STORES
from emulator.contract.positions import Path
from extcli.config.settings import DEFAULT_CHANNEL, DEFAULT_CLIENT_ID
from extcli.faults import FAULTS, report_repeated_ids

VERSION = 1
STORES = (
    "extension_state",
    "channel_state",
    *VIEWER_STORES,
    "extension_hidden_state",
    "extension_config",
    "channel_config",
)
_MANY = 100_000


@dataclass(frozen=True)
class OneOrMore:
    """A value, or a list of such values."""

    kind: ValueKind
    most: int

    @property
    def allowed(self) -> str:
        return f"{self.kind.allowed}, or a list of them"

    def check(self, value: object, path: Path, report: Report) -> None:
        if isinstance(value, list):
            ListOf(self.kind, "values", self.most, 1).check(value, path, report)
        elif isinstance(value, int):
            self.kind.check(value, path, report)
        else:
            report(path, f"must be {self.allowed}")


_FLAG = Simple("true or false", lambda value: isinstance(value, bool))
_INSTANT = Simple('a time with a zone in RFC 3339, such as "2026-12-24T18:00:00Z"', instant_of)
"""A point in time with a zone: a TOML date and time, or a text in RFC 3339."""
_CLIENT_ID = Text(pattern=CLIENT_ID, rule=f"a client id: {CLIENT_ID_RULE}")
_CHANNEL = _ID = Text(MAX_ID_LENGTH)
_POLL_ID = Text(pattern=POLL_ID, rule=POLL_ID_RULE)
_OF_EXTENSION = {"client_id": Field(_CLIENT_ID, "the client id, if not the one at the top")}
_PLACE = {**_OF_EXTENSION, "channel": Field(_CHANNEL, "the channel, if not the one at the top")}


def _poll_rule(poll: dict[str, Any], path: Path, report: Report) -> None:
    starts, ends = instant_of(poll.get("starts_at")), instant_of(poll.get("ends_at"))
    if starts and ends and starts > ends:
        report((*path, "starts_at"), "must not be after ends_at")
    total = poll.get("total_votes_per_user", 1)
    for user, votes in poll.get("votes", {}).items():
        values = votes if isinstance(votes, list) else [votes]
        at = (*path, "votes", user)
        if len(values) > total:
            report(at, f"{len(values)} votes; total_votes_per_user is {total}")
        elif (most := max(Counter(values).values())) > (limit := poll.get("votes_per_option", 1)):
            report(at, f"{most} votes for one option; votes_per_option is {limit}")
        elif (distinct := len(set(values))) > (limit := poll.get("distinct_options_per_user", 1)):
            report(at, f"votes for {distinct} options; distinct_options_per_user is {limit}")


def _store_rule(store: dict[str, Any], path: Path, report: Report) -> None:
    if store["store"] in VIEWER_STORES and "user" not in store:
        report((*path, "user"), f"missing; {store['store']} belongs to a user")
    elif store["store"] not in VIEWER_STORES and "user" in store:
        report((*path, "user"), f"must be left out; {store['store']} belongs to no user")


def _codes_rule(codes: dict[str, Any], path: Path, report: Report) -> None:
    if ("file" in codes) == ("codes" in codes):
        report((*path, "codes"), "give either file or codes")
    elif "column" in codes and "codes" in codes:
        report((*path, "column"), "is for file only")


def _clock_rule(clock: dict[str, Any], path: Path, report: Report) -> None:
    if not clock:
        report(path, "give at, or frozen, or both")


def _seed_rule(seed: dict[str, Any], path: Path, report: Report) -> None:
    """Report polls, rankings and other records that two tables of a seed describe."""
    report_repeated_ids(seed.get("faults", []), report)
    for kind in ("polls", "rankings", "buffers", "stores", "json_stores", "codes", "links"):
        taken: dict[tuple[object, ...], int] = {}
        for at, each in enumerate(seed.get(kind, [])):
            for field, identity in _identities(seed, kind, each):
                if (first := taken.setdefault((field, *identity), at)) != at:
                    report((kind, at, field), f"{kind}[{first}] has the same {field}")


def _identities(seed: dict[str, Any], kind: str, each: dict[str, Any]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield the field with the id of a record, and all values that distinguish the record from others."""
    client_id = each.get("client_id", seed.get("client_id", DEFAULT_CLIENT_ID))
    channel = each.get("channel", seed.get("channel", DEFAULT_CHANNEL))
    if kind == "codes":
        yield from ((field, (client_id, each[field])) for field in ("index", "name"))
    elif kind == "stores":
        store = each["store"]
        of_channel = channel if store.startswith("channel") or store == "viewer_state" else None
        yield "store", (None if store.startswith("channel") else client_id, of_channel, store, each.get("user"))
    elif kind == "links":
        yield "channel", (client_id, channel)
    else:
        is_shared = each["id"].startswith("global" if kind == "json_stores" else GLOBAL) and kind != "buffers"
        yield "id", (client_id, None if is_shared else channel, each["id"])


POLL = Table(
    {
        "id": Field(_POLL_ID, "the poll's id; all channels share one that starts with global-", required=True),
        "prompt": Field(Text(bytes=MAX_PROMPT_BYTES), "the question"),
        "options": Field(
            ListOf(Text(bytes=MAX_OPTION_BYTES), "options", MAX_OPTIONS, 1),
            "the answers; a vote for the first has value 0",
        ),
        "user_data": Field(Json(MAX_USER_DATA_BYTES), "your own data"),
        "starts_at": Field(_INSTANT, "when it opens"),
        "ends_at": Field(_INSTANT, "when it ends; it has its votes even if that is past"),
        "user_id_voting": Field(_FLAG, "whether only users who share their identity can vote"),
        "distinct_options_per_user": Field(
            Whole(1, MAX_DISTINCT_OPTIONS), "the most options of one user; 1 by default"
        ),
        "total_votes_per_user": Field(Whole(1, MAX_VOTES), "the most votes of one user; 1 by default, more add up"),
        "votes_per_option": Field(Whole(1, MAX_VOTES), "the most votes of one user for one option; 1 by default"),
        "disabled": Field(_FLAG, "whether it refuses votes"),
        "votes": Field(MapOf(OneOrMore(Whole(LOWEST, HIGHEST), MAX_VOTES)), "the votes by user, in order"),
        **_PLACE,
    },
    _poll_rule,
)
RANKING = Table(
    {
        "id": Field(_ID, "the ranking's id; all channels share one that starts with global-", required=True),
        "answers": Field(MapOf(Text(bytes=MAX_ANSWER_BYTES)), "the answers by user, in order", required=True),
        **_PLACE,
    }
)
ENTRY = Table(
    {
        "user": Field(USER, "who added it", required=True),
        "data": Field(Json(255), "the JSON value", required=True),
    }
)
BUFFER = Table(
    {
        "id": Field(_ID, "the buffer's id", required=True),
        "entries": Field(ListOf(ENTRY, "entries", _MANY, 1), "tables, oldest first", required=True),
        **_PLACE,
    }
)
STORE = Table(
    {
        "store": Field(one_of(STORES), "the store", required=True),
        "user": Field(USER, "whose it is, for viewer_state and extension_viewer_state"),
        "data": Field(Json(MAX_STORE_BYTES, is_object=True), "its content", required=True),
        **_PLACE,
    },
    _store_rule,
)
JSON_STORE = Table(
    {
        "id": Field(_ID, "the store's id; all channels share one that starts with global", required=True),
        "data": Field(Json(MAX_JSON_STORE_BYTES, is_object=True), "its content", required=True),
        **_PLACE,
    }
)
CODES = Table(
    {
        "index": Field(Whole(0, MAX_SETS - 1), "the set's index", required=True),
        "name": Field(Text(MAX_SET_NAME_LENGTH), "the set's name", required=True),
        "file": Field(Text(4096), "a file of codes, relative to the seed: text, CSV, JSON or JSON lines"),
        "column": Field(Text(256), "the column of a CSV file, by heading or number; the member of JSON lines"),
        "codes": Field(ListOf(Text(MAX_CODE_LENGTH), "codes", MAX_CODES), "the codes themselves, in place of a file"),
        "marked": Field(MapOf(Whole(1, 1_000)), "how many of the codes each marked user may redeem"),
        **_OF_EXTENSION,
    },
    _codes_rule,
)
LINK = Table(
    {
        "refresh_token_file": Field(
            Text(4096), "where to write the game's refresh token, relative to the seed; only you can read it"
        ),
        **_PLACE,
    }
)
CLOCK = Table(
    {
        "at": Field(_INSTANT, "the time to set it to"),
        "frozen": Field(_FLAG, "whether it stands still"),
    },
    _clock_rule,
)


def _tables(table: Table, what: str) -> ListOf:
    return ListOf(table, what, _MANY)


SEED = Table(
    {
        "extcli": Field(Whole(VERSION, VERSION), "the version of this format", required=True),
        "client_id": Field(_CLIENT_ID, f"the extension's client id; {DEFAULT_CLIENT_ID} by default"),
        "channel": Field(_CHANNEL, f"the channel; {DEFAULT_CHANNEL} by default"),
        "clock": Field(CLOCK, "the service's clock, which then runs on unless it is frozen"),
        "polls": Field(_tables(POLL, "polls"), "polls: definitions and votes"),
        "rankings": Field(_tables(RANKING, "rankings"), "rankings: the answers of users"),
        "buffers": Field(_tables(BUFFER, "buffers"), "buffers of small JSON values"),
        "stores": Field(_tables(STORE, "stores"), "state and config stores"),
        "json_stores": Field(_tables(JSON_STORE, "json_stores"), "JSON stores"),
        "codes": Field(_tables(CODES, "codes"), "sets of reward codes"),
        "links": Field(_tables(LINK, "links"), "channels that a game is linked to"),
        "faults": Field(FAULTS, "faults: failures on purpose"),
    },
    _seed_rule,
)


def reference() -> Iterator[tuple[str, str, str]]:
    """Yield every field as three texts: its path, what it accepts, and its meaning."""
    yield from _reference_of_table(SEED, "")


def _reference_of_table(table: Table, prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, field in table.fields.items():
        kind, path = field.kind, f"{prefix}{name}"
        inner, allowed = kind, kind.allowed
        if isinstance(kind, ListOf) and isinstance(kind.kind, Table):
            inner, path, allowed = kind.kind, f"{path}[]", "a list of tables"
        yield path, f"{allowed}; required" if field.required else allowed, field.meaning
        if isinstance(inner, Table):
            yield from _reference_of_table(inner, f"{path}.")
