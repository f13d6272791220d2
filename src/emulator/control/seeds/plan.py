"""The document of a seed, and its effects: the calls that create its data, the links and the clock. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count, islice
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from emulator.contract.limits import MAX_ID_LENGTH, MAX_USER_LENGTH
from emulator.contract.names import CLIENT_ID_RULE, VIEWER_STORES, is_client_id
from emulator.contract.positions import path_text
from emulator.core.callers import Caller, Role, opaque_id_of
from emulator.core.clock import clamp_instant
from emulator.core.errors import BadRequest, Facts, refusal
from emulator.core.wire import json_codec
from emulator.core.wire.url import SERVICE

_SEED = (BadRequest, "Invalid seed", "docs: Seeds")


@refusal(*_SEED, "The seed has another version",
         "Set its field extcli to {known}; `extcli seed example` prints a seed.")  # fmt: skip
def other_version(*, version: int, known: int) -> Facts:
    detail = f"extcli: this service reads version {known} of seeds, not {version}"
    return Facts(detail, f"version {version}", f"version {known}")


@refusal(*_SEED, "The seed is invalid", "Edit the fields named; `extcli seed check FILE` finds their lines.")
def invalid_seed(*, problems: Sequence[str]) -> Facts:
    return Facts(problems[0], problems[0], "a seed as `extcli seed example` prints it", problems[1:])


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


class _Strict(Struct, forbid_unknown_fields=True):
    """A table of a seed. Unknown fields are refused."""


class Placed(_Strict):
    """An entry with a client id and a channel. By default it has the client id and channel at the top of the seed."""

    client_id: str = ""
    channel: str = ""


P = TypeVar("P", bound=Placed)


class SeedPoll(Placed, kw_only=True):
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


class SeedRanking(Placed, kw_only=True):
    """A ranking."""

    id: str
    answers: dict[str, str]
    """By user, in the order of answering."""


class SeedEntry(_Strict):
    """One entry of a buffer."""

    user: str
    data: msgspec.Raw


class SeedBuffer(Placed, kw_only=True):
    """A buffer, oldest entry first."""

    id: str
    entries: list[SeedEntry]


class SeedStore(Placed, kw_only=True):
    """A state or config store."""

    store: StoreName
    data: msgspec.Raw
    user: str = ""
    """Of `viewer_state` and `extension_viewer_state`."""


class SeedJsonStore(Placed, kw_only=True):
    """A JSON store."""

    id: str
    data: msgspec.Raw


class SeedCodes(_Strict):
    """A set of codes."""

    index: Annotated[int, Meta(ge=0, le=9)]
    name: str
    codes: list[str]
    marked: dict[str, Annotated[int, Meta(ge=1, le=1_000)]] = {}
    """How many codes each user may redeem."""
    client_id: str = ""


class SeedLink(Placed):
    """A channel that a game is linked to."""


class SeedClock(_Strict):
    """The service's clock."""

    at: Instant | None = None
    frozen: bool = False


class Seed(_Strict):
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
    faults: list[dict[str, Any]] = []
    """As `POST /_emulator/faults` takes them."""

    @property
    def at(self) -> int | None:
        """The time that the clock is set to, in Unix ms; `None` if it stays."""
        return _unix_ms(self.clock.at) if self.clock and self.clock.at else None


VERSION = 1
_OTHERS = {*Placed.__struct_fields__, "id", "votes"}
_DEFINITION = tuple(name for name in SeedPoll.__struct_fields__ if name not in _OTHERS)
"""The fields of a definition."""
_LATER = ("ends_at", "disabled")
"""Fields that are set after the votes are cast, because they may refuse votes."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ID_LENGTH = 22
MAX_PROBLEMS = 20
"""Problems that a response lists."""
_LONGEST = {"channel": MAX_ID_LENGTH, "user": MAX_USER_LENGTH}
"""Characters in a name."""


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

    def with_field(self, detail: str) -> str:
        """Return the detail of an error response, with the field of the seed in front."""
        field, colon, problem = detail.partition(": ")
        longest_first = sorted(self.fields, key=len, reverse=True)
        known = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        if colon and known.match(field):
            return f"{known.sub(lambda found: self.fields[found[0]], field)}: {problem}"
        return f"{self.at}: {detail}"


def read_seed(document: bytes) -> Seed:
    """Read a seed, whose faults then all have an id. Raises `BadRequest` for another format or version."""
    seed = json_codec.decode(document, Seed)
    if seed.extcli != VERSION:
        raise other_version(version=seed.extcli, known=VERSION)
    if problems := list(islice(_invalid_names(seed), MAX_PROBLEMS)):
        raise invalid_seed(problems=problems)
    if seed.at is not None and seed.at != clamp_instant(seed.at):
        raise invalid_seed(problems=["clock.at: must be in the years 1970 to 9999, in UTC"])
    for number, fault in enumerate(seed.faults, 1):
        if fault.get("id", "") == "":
            fault["id"] = f"seed-{number}"
    return seed


def _invalid_names(seed: Seed) -> Iterator[str]:
    """Yield the problems of client ids, channels and users that could not be in a token."""
    for place, name, text in _names_in(seed):
        if name == "client_id":
            if not is_client_id(text):
                yield f"{place}: must be {CLIENT_ID_RULE}"
        elif not 1 <= len(text) <= _LONGEST[name] or not text.isprintable():
            yield f"{place}: must be 1 to {_LONGEST[name]} printable characters"


def _names_in(seed: Seed) -> Iterator[tuple[str, str, str]]:
    """Yield each client id, channel and user of a seed, with its path in the document and its kind."""
    yield "client_id", "client_id", seed.client_id
    yield "channel", "channel", seed.channel
    for kind in ("polls", "rankings", "buffers", "stores", "json_stores", "codes", "links"):
        for at, each in enumerate(getattr(seed, kind)):
            place = f"{kind}[{at}]"
            for name in ("client_id", "channel", "user"):
                if text := getattr(each, name, ""):
                    yield f"{place}.{name}", name, text
            for name in ("votes", "answers"):
                for user in getattr(each, name, ()):
                    yield f"{place}.{path_text((name, user))}", "user", user
            for number, entry in enumerate(getattr(each, "entries", ())):
                yield f"{place}.entries[{number}].user", "user", entry.user
            if getattr(each, "store", "") in VIEWER_STORES and not each.user:
                yield f"{place}.user", "user", ""


class _Thing(NamedTuple):
    """One entry of a seed, and its path in the document."""

    place: str
    client_id: str
    channel: str

    def call(
        self, path: str, body: object, *, at: str = "", user: str = "", id: str = "", fields: Mapping[str, str] = {}
    ) -> SeedCall:
        """Return a POST that acts as the viewer `user`, or as the backend without one.

        `at` is the field of the entry that errors name.
        """
        opaque_id = opaque_id_of(user) if user else f"A-{Role.BACKEND}"
        role = Role.VIEWER if user else Role.BACKEND
        caller = Caller(self.client_id, role, self.channel, user or None, opaque_id)
        named = {"id": f"{self.place}.id"} if id else {}
        fields = {**named, **{theirs: f"{self.place}.{ours}" for theirs, ours in fields.items()}}
        query = {"id": id} if id else {}
        return SeedCall(f"{self.place}{at}", caller, "POST", SERVICE + path, query, json_codec.encode(body), fields)


def calls_of(seed: Seed) -> Iterator[list[SeedCall]]:
    """Yield the calls of each thing in a seed. After one that fails, the rest of its list is left out."""

    def placed(kind: str, items: Sequence[P]) -> Iterator[tuple[_Thing, P]]:
        for at, item in enumerate(items):
            yield _Thing(f"{kind}[{at}]", item.client_id or seed.client_id, item.channel or seed.channel), item

    for of, poll in placed("polls", seed.polls):
        yield list(_poll_calls(of, poll))
    for of, ranking in placed("rankings", seed.rankings):
        for user, answer in ranking.answers.items():
            at_user = f".{path_text(('answers', user))}"
            yield [of.call("rank", {"key": answer}, at=at_user, user=user, id=ranking.id)]
    for of, buffer in placed("buffers", seed.buffers):
        for number, entry in enumerate(buffer.entries):
            place = f".entries[{number}].data"
            yield [of.call("accumulate", entry.data, at=place, user=entry.user, id=buffer.id)]
    for of, store in placed("stores", seed.stores):
        yield [of.call(store.store, store.data, at=".data", user=store.user)]
    for of, json_store in placed("json_stores", seed.json_stores):
        yield [of.call("json_store", json_store.data, at=".data", id=json_store.id)]
    sets: dict[str, dict[int, SeedCodes]] = {}
    for at, code_set in enumerate(seed.codes):
        sets.setdefault(code_set.client_id or seed.client_id, {})[at] = code_set
    for client_id, its_sets in sets.items():
        yield list(_code_calls(client_id, its_sets))


def _poll_calls(of: _Thing, poll: SeedPoll) -> Iterator[SeedCall]:
    config = {name: _seconds(value) for name in _DEFINITION if (value := getattr(poll, name)) is not UNSET}
    fields = {_config_name(name): name for name in _DEFINITION}
    later = [name for name in _LATER if name in config]

    def define(names: Iterable[str]) -> SeedCall:
        body = {"config": {_config_name(name): config[name] for name in names}}
        return of.call("vote_config", body, id=poll.id, fields=fields)

    if config:
        yield define([name for name in config if name not in later])
    for user, votes in poll.votes.items():
        for value in votes if isinstance(votes, list) else [votes]:
            yield of.call("vote", {"value": value}, at=f".{path_text(('votes', user))}", user=user, id=poll.id)
    if later:
        yield define(config)


def _config_name(field: str) -> str:
    """Return the name in `vote_config` of a field of a definition: `userIDVoting` of `user_id_voting`."""
    first, *words = field.split("_")
    return first + "".join("ID" if word == "id" else word.capitalize() for word in words)


def _code_calls(client_id: str, sets: Mapping[int, SeedCodes]) -> Iterator[SeedCall]:
    """Yield the calls that define the sets of a client id and mark their users. Keys are positions in the document."""
    of = _Thing("codes", client_id, "")
    fields = {"names": "codes[].name", "indices": "codes[].index"}
    for number, at in enumerate(sets):
        for theirs, ours in _CODES.items():
            fields[f"{theirs}[{number}]"] = f"codes[{at}].{ours}"
    document = {}
    for name, field in _CODES.items():
        document[name] = [getattr(each, field) for each in sets.values()]
    yield of.call("codes", document)._replace(method="PUT", fields=fields)
    for at, each in sets.items():
        for number in dict.fromkeys(each.marked.values()):
            users = [user for user, codes in each.marked.items() if codes == number]
            limits = [0] * each.index + [number]
            grant = {"users": users, "prizes": [each.index] * number, "prize_limits": limits}
            yield of.call("codes/mark_from_list", grant)._replace(at=f"codes[{at}].marked")


_CODES = {"codes": "codes", "names": "name", "indices": "index"}
"""The members of a `PUT codes`, and the fields of the sets that they list."""


def counts_of(seed: Seed) -> dict[str, int]:
    """Return how many things of each kind a seed has."""
    kinds = ("polls", "rankings", "buffers", "stores", "json_stores")
    counts = {name: len(getattr(seed, name)) for name in kinds}
    votes = [votes for poll in seed.polls for votes in poll.votes.values()]
    return {
        **counts,
        "votes": sum(len(each) if isinstance(each, list) else 1 for each in votes),
        "answers": sum(len(ranking.answers) for ranking in seed.rankings),
        "entries": sum(len(buffer.entries) for buffer in seed.buffers),
        "codes": sum(len(code_set.codes) for code_set in seed.codes),
        "links": len(seed.links),
        "faults": len(seed.faults),
    }


def _unix_ms(instant: datetime) -> int:
    """Return a point in time in Unix ms."""
    return (instant - _EPOCH) // timedelta(milliseconds=1)


def ids_of(document: bytes) -> Callable[[], str]:
    """Return what makes the ids of stored things. They depend on the seed only, so that it can replace its own data."""
    digest, numbers = sha256(document).digest(), count()
    return lambda: sha256(digest + b"%d" % next(numbers)).hexdigest()[:_ID_LENGTH]


def _seconds(value: Any) -> Any:
    """Return a point in time in Unix seconds, rounded up; any other value as it is."""
    return -(-_unix_ms(value) // 1000) if isinstance(value, datetime) else value
