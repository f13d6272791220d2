"""The document of a seed, and the calls that make its data. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from emulator.callers import Caller, Role, opaque_id_of
from emulator.wire import json_codec

VERSION: Final = 1
_DEFINITION: Final = {
    "prompt": "prompt",
    "options": "options",
    "user_data": "userData",
    "starts_at": "startsAt",
    "ends_at": "endsAt",
    "user_id_voting": "userIDVoting",
    "distinct_options_per_user": "distinctOptionsPerUser",
    "total_votes_per_user": "totalVotesPerUser",
    "votes_per_option": "votesPerOption",
    "disabled": "disabled",
}
"""The fields of a definition, and their names in `vote_config`."""
_LATER: Final = ("ends_at", "disabled")
"""Those that take effect after the votes, which they would refuse."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Instant = Annotated[datetime, Meta(tz=True)]
StoreName = Literal[
    "extension_state",
    "channel_state",
    "viewer_state",
    "extension_viewer_state",
    "extension_hidden_state",
    "extension_config",
    "channel_config",
]


class _Strict(Struct, forbid_unknown_fields=True, kw_only=True):
    """A table without other fields."""


class _Placed(_Strict, kw_only=True):
    """A thing of a client id in a channel: those at the top of the seed, unless it has its own."""

    client_id: str = ""
    channel: str = ""


class SeedPoll(_Placed, kw_only=True):
    """A poll. It has a definition if it has any field of one."""

    id: str
    prompt: str | UnsetType = UNSET
    options: list[str] | UnsetType = UNSET
    user_data: Any | UnsetType = UNSET
    starts_at: Instant | UnsetType = UNSET
    ends_at: Instant | UnsetType = UNSET
    user_id_voting: bool | UnsetType = UNSET
    distinct_options_per_user: int | UnsetType = UNSET
    total_votes_per_user: int | UnsetType = UNSET
    votes_per_option: int | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    votes: dict[str, int | list[int]] = {}
    """By user, in the order of voting."""


class SeedRanking(_Placed, kw_only=True):
    """A ranking."""

    id: str
    answers: dict[str, str]
    """By user, in the order of answering."""


class SeedEntry(_Strict, kw_only=True):
    """One entry of a buffer."""

    user: str
    data: msgspec.Raw


class SeedBuffer(_Placed, kw_only=True):
    """A buffer, oldest entry first."""

    id: str
    entries: list[SeedEntry]


class SeedStore(_Placed, kw_only=True):
    """A state or config store."""

    store: StoreName
    data: msgspec.Raw
    user: str = ""
    """Of `viewer_state` and `extension_viewer_state`."""


class SeedJsonStore(_Placed, kw_only=True):
    """A JSON store."""

    id: str
    data: msgspec.Raw


class SeedCodes(_Strict, kw_only=True):
    """A set of codes."""

    index: Annotated[int, Meta(ge=0, le=9)]
    name: str
    codes: list[str]
    marked: dict[str, Annotated[int, Meta(ge=1, le=1_000)]] = {}
    """How many codes each user may redeem."""
    client_id: str = ""


class SeedLink(_Placed, kw_only=True):
    """A channel that a game is linked to."""


class SeedClock(_Strict, kw_only=True):
    """The service's clock."""

    at: Instant | None = None
    frozen: bool = False


class Seed(_Strict, kw_only=True):
    """The data with which a test begins. `extcli` is the version of the format."""

    extcli: int
    client_id: str
    channel: str
    clock: SeedClock | None = None
    polls: list[SeedPoll] = []
    rankings: list[SeedRanking] = []
    buffers: list[SeedBuffer] = []
    stores: list[SeedStore] = []
    json_stores: list[SeedJsonStore] = []
    codes: list[SeedCodes] = []
    links: list[SeedLink] = []


class SeedCall(NamedTuple):
    """A REST call that makes a part of the data."""

    at: str
    """The field of the document that it comes from."""
    caller: Caller
    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    fields: Mapping[str, str]
    """The fields of the document, by the fields of the call that they became."""

    def located(self, detail: str) -> str:
        """Return a detail of an error answer, which begins with the field of the document."""
        field, colon, problem = detail.partition(": ")
        known = re.compile("|".join(map(re.escape, sorted(self.fields, key=len, reverse=True))) or r"(?!)")
        if colon and known.match(field):
            return f"{known.sub(lambda found: self.fields[found[0]], field)}: {problem}"
        return f"{self.at}: {detail}"


class _Thing(NamedTuple):
    """One thing of the document, and its place in it."""

    place: str
    client_id: str
    channel: str

    def call(
        self,
        method: str,
        path: str,
        body: bytes,
        *,
        at: str = "",
        user: str = "",
        id: str = "",
        fields: Mapping[str, str] | None = None,
    ) -> SeedCall:
        """Return a call of a viewer, if there is a `user`, or of the backend. `at` is the field inside the thing."""
        opaque_id = opaque_id_of(user) if user else f"A-{Role.BACKEND}"
        role = Role.VIEWER if user else Role.BACKEND
        caller = Caller(self.client_id, role, self.channel, user or None, opaque_id)
        named = {"id": f"{self.place}.id"} if id else {}
        fields = {**named, **{theirs: f"{self.place}.{ours}" for theirs, ours in (fields or {}).items()}}
        query = {"id": id} if id else {}
        return SeedCall(f"{self.place}{at}", caller, method, f"/v1/e/{path}", query, body, fields)


def calls_of(seed: Seed) -> Iterator[list[SeedCall]]:
    """Yield the calls of each thing in the document. After one that fails, the rest of the list is left out."""

    def thing(place: str, item: _Placed) -> _Thing:
        return _Thing(place, item.client_id or seed.client_id, item.channel or seed.channel)

    for at, poll in enumerate(seed.polls):
        yield list(_poll_calls(thing(f"polls[{at}]", poll), poll))
    for at, ranking in enumerate(seed.rankings):
        of = thing(f"rankings[{at}]", ranking)
        for user, answer in ranking.answers.items():
            body = json_codec.encode({"key": answer})
            yield [of.call("POST", "rank", body, at=f".answers{_member(user)}", user=user, id=ranking.id)]
    for at, buffer in enumerate(seed.buffers):
        of = thing(f"buffers[{at}]", buffer)
        for number, entry in enumerate(buffer.entries):
            place, body = f".entries[{number}].data", bytes(entry.data)
            yield [of.call("POST", "accumulate", body, at=place, user=entry.user, id=buffer.id)]
    for at, store in enumerate(seed.stores):
        of = thing(f"stores[{at}]", store)
        yield [of.call("POST", store.store, bytes(store.data), at=".data", user=store.user)]
    for at, json_store in enumerate(seed.json_stores):
        of = thing(f"json_stores[{at}]", json_store)
        yield [of.call("POST", "json_store", bytes(json_store.data), at=".data", id=json_store.id)]
    for client_id in dict.fromkeys(each.client_id or seed.client_id for each in seed.codes):
        sets = {at: each for at, each in enumerate(seed.codes) if (each.client_id or seed.client_id) == client_id}
        yield list(_code_calls(client_id, sets))


def _poll_calls(of: _Thing, poll: SeedPoll) -> Iterator[SeedCall]:
    config = {name: _seconds(value) for name in _DEFINITION if (value := getattr(poll, name)) is not UNSET}
    later = [name for name in _LATER if name in config]

    def define(names: Iterable[str]) -> SeedCall:
        body = json_codec.encode({"config": {_DEFINITION[name]: config[name] for name in names}})
        fields = {theirs: ours for ours, theirs in _DEFINITION.items()}
        return of.call("POST", "vote_config", body, id=poll.id, fields=fields)

    if config:
        yield define([name for name in config if name not in later])
    for user, votes in poll.votes.items():
        for value in votes if isinstance(votes, list) else [votes]:
            body, place = json_codec.encode({"value": value}), f".votes{_member(user)}"
            yield of.call("POST", "vote", body, at=place, user=user, id=poll.id)
    if later:
        yield define(config)


def _code_calls(client_id: str, sets: Mapping[int, SeedCodes]) -> Iterator[SeedCall]:
    """Yield the calls that define the sets of a client id and mark their users. Keys are positions in the document."""
    of = _Thing("codes", client_id, "")
    fields = {"names": "codes[].name", "indices": "codes[].index"}
    for number, at in enumerate(sets):
        for theirs, ours in (("codes", "codes"), ("names", "name"), ("indices", "index")):
            fields[f"{theirs}[{number}]"] = f"codes[{at}].{ours}"
    document = {name: [getattr(each, field) for each in sets.values()] for name, field in _CODES.items()}
    yield of.call("PUT", "codes", json_codec.encode(document))._replace(fields=fields)
    for at, each in sets.items():
        for number in dict.fromkeys(each.marked.values()):
            users = [user for user, codes in each.marked.items() if codes == number]
            grant = {"users": users, "prizes": [each.index] * number, "prize_limits": [0] * each.index + [number]}
            marking = of.call("POST", "codes/mark_from_list", json_codec.encode(grant))
            yield marking._replace(at=f"codes[{at}].marked")


_CODES: Final = {"codes": "codes", "names": "name", "indices": "index"}
"""The members of a `PUT codes`, and the fields of the sets that they list."""


def counts_of(seed: Seed) -> dict[str, int]:
    """Return how many things of each kind the document has."""
    counts = {name: len(getattr(seed, name)) for name in ("polls", "rankings", "buffers", "stores", "json_stores")}
    votes = [votes for poll in seed.polls for votes in poll.votes.values()]
    return {
        **counts,
        "votes": sum(len(each) if isinstance(each, list) else 1 for each in votes),
        "answers": sum(len(ranking.answers) for ranking in seed.rankings),
        "entries": sum(len(buffer.entries) for buffer in seed.buffers),
        "codes": sum(len(code_set.codes) for code_set in seed.codes),
        "links": len(seed.links),
    }


def unix_ms(instant: datetime) -> int:
    """Return a point in time in Unix ms."""
    return (instant - _EPOCH) // timedelta(milliseconds=1)


def _seconds(value: Any) -> Any:
    """Return a point in time in Unix seconds, rounded up; any other value as it is."""
    return -(-unix_ms(value) // 1000) if isinstance(value, datetime) else value


def _member(name: str) -> str:
    """Return the last part of a path, as `extcli` writes it."""
    return f".{name}" if _BARE.fullmatch(name) else f"[{json.dumps(name, ensure_ascii=False)}]"
