"""Seeds: the data with which a test begins, applied in one step: all of it, or nothing.

The calls of a seed run on an empty scratch service with the settings and the key of the real one. So every rule of
every feature applies, and a refused call has changed nothing. Then, in one step, the scratch data is written to the
real service, where it replaces data under equal keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from emulator.contract.kinds import instant_of, schema_of
from emulator.contract.positions import Path, path_text
from emulator.contract.seeds import SEED
from emulator.control.faults import FaultPlan
from emulator.control.operation import Control
from emulator.core.callers import Caller, Role, opaque_id_of
from emulator.core.clock import Clock, ClockState
from emulator.core.errors import BadRequest, Facts, ServiceError, refusal
from emulator.core.ids import NewId
from emulator.core.observability.audit import audit, without_audit
from emulator.core.observability.facts import REPLACED, notice
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import too_deep
from emulator.core.wire.url import SERVICE
from emulator.features.id_quota import is_quota_record
from emulator.http.endpoint import Call, control_endpoint
from emulator.storage.records import DocumentRecord, Record


@refusal(BadRequest, "Invalid seed", "docs: Seeds", "The seed is invalid",
         "Correct the named fields; `extcli seed check FILE` finds the lines.")  # fmt: skip
def invalid_seed(*, problems: Sequence[str]) -> Facts:
    return Facts(problems[0], problems[0], "a seed as `extcli seed example` prints it", problems[1:])


_LISTS_WITH_PLACE = ("polls", "rankings", "buffers", "stores", "json_stores", "codes", "links")
"""The lists whose tables belong to a client id and a channel."""
_NOT_OF_DEFINITION = ("id", "votes", "client_id", "channel")
"""The fields of a poll that are not of its definition. A poll has a definition if it has any other field."""
_AFTER_VOTES = ("ends_at", "disabled")
"""Fields that are set after the votes are cast, because they may refuse votes."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ID_LENGTH = 22
MAX_PROBLEMS = 20
"""Problems that a response lists."""


Table = dict[str, Any]
"""A table of a seed."""
Seed = dict[str, Any]
"""A valid document of `emulator.contract.seeds.SEED` with all fields. Times are in Unix ms, and votes in lists.

Each fault has an id, and each other table of a list its client id and channel.
"""


def read_seed(document: bytes) -> Seed:
    """Read a seed. Raises `BadRequest` with its first problems."""
    given = json_codec.decode_any(document)
    problems: list[str] = []

    def report(path: Path, problem: str) -> None:
        problems.append(f"{path_text(path) or 'the seed'}: {problem}")
        if len(problems) == MAX_PROBLEMS:
            raise invalid_seed(problems=problems)

    try:
        SEED.check(given, (), report)
    except RecursionError:
        raise too_deep(reason="Invalid seed", what="the seed") from None
    if problems:
        raise invalid_seed(problems=problems)
    return _with_defaults(given)


def _with_defaults(given: Table) -> Seed:
    """Return a valid document in the form of `Seed`."""
    place = {"client_id": given["client_id"], "channel": given["channel"]}
    seed = {**{name: [] for name in SEED.fields}, "clock": {}, **given}
    for kind in _LISTS_WITH_PLACE:
        seed[kind] = [place | table for table in seed[kind]]
    for number, fault in enumerate(seed["faults"], 1):
        if fault.get("id", "") == "":
            fault["id"] = f"seed-{number}"
    for poll in seed["polls"]:
        votes = poll.get("votes", {}).items()
        poll["votes"] = {user: each if isinstance(each, list) else [each] for user, each in votes}
    for table in (seed["clock"], *seed["polls"]):
        for name in ("at", "starts_at", "ends_at"):
            if instant := instant_of(table.get(name)):
                table[name] = (instant - _EPOCH) // timedelta(milliseconds=1)
    return seed


class SeedCall(NamedTuple):
    """A REST call that makes a part of the data."""

    at: Path
    """The field of the document that errors name."""
    table: Table
    """Its client id, channel and id are those of the call."""
    path: str
    body: object
    user: str = ""
    """The viewer who calls; empty for the backend."""
    method: str = "POST"

    async def run(self, scratch: Any) -> None:
        """Make the call to a service. Raises `ServiceError`."""
        role = Role.VIEWER if self.user else Role.BACKEND
        opaque_id = opaque_id_of(self.user) if self.user else f"A-{role}"
        caller = Caller(self.table["client_id"], role, self.table["channel"], self.user or None, opaque_id)
        query = {"id": self.table["id"]} if "id" in self.table else {}
        await scratch.dispatcher.run_as(self.method, SERVICE + self.path, caller, query, json_codec.encode(self.body))

    def with_field(self, detail: str) -> str:
        """Return the detail of an error response, with the field of the seed in front."""
        if detail.startswith("id: "):
            return f"{path_text(self.at[:2])}.{detail}"
        return f"{path_text(self.at)}: {detail}"


def calls_of(seed: Seed) -> Iterator[list[SeedCall]]:
    """Yield the calls of each table of a seed. After one that fails, the rest of its list is left out."""
    for at, poll in enumerate(seed["polls"]):
        yield list(_poll_calls(at, poll))
    for at, ranking in enumerate(seed["rankings"]):
        for user, answer in ranking["answers"].items():
            yield [SeedCall(("rankings", at, "answers", user), ranking, "rank", {"key": answer}, user)]
    for at, buffer in enumerate(seed["buffers"]):
        for number, entry in enumerate(buffer["entries"]):
            place = ("buffers", at, "entries", number, "data")
            yield [SeedCall(place, buffer, "accumulate", entry["data"], entry["user"])]
    for at, store in enumerate(seed["stores"]):
        yield [SeedCall(("stores", at, "data"), store, store["store"], store["data"], store.get("user", ""))]
    for at, json_store in enumerate(seed["json_stores"]):
        yield [SeedCall(("json_stores", at, "data"), json_store, "json_store", json_store["data"])]
    sets: dict[str, dict[int, Table]] = {}
    for at, code_set in enumerate(seed["codes"]):
        sets.setdefault(code_set["client_id"], {})[at] = code_set
    for sets_of_extension in sets.values():
        yield list(_code_calls(sets_of_extension))


def _poll_calls(at: int, poll: Table) -> Iterator[SeedCall]:
    config = {name: value for name, value in poll.items() if name not in _NOT_OF_DEFINITION}
    for name in config.keys() & {"starts_at", "ends_at"}:
        config[name] = -(-config[name] // 1000)  # in seconds, rounded up
    later = [name for name in _AFTER_VOTES if name in config]

    def define(names: Iterable[str]) -> SeedCall:
        body = {"config": {_config_name(name): config[name] for name in names}}
        return SeedCall(("polls", at), poll, "vote_config", body)

    if config:
        yield define([name for name in config if name not in later])
    for user, votes in poll["votes"].items():
        for value in votes:
            yield SeedCall(("polls", at, "votes", user), poll, "vote", {"value": value}, user)
    if later:
        yield define(config)


def _config_name(field: str) -> str:
    """Return the name in `vote_config` of a field of a definition: `userIDVoting` of `user_id_voting`."""
    first, *words = field.split("_")
    return first + "".join("ID" if word == "id" else word.capitalize() for word in words)


def _code_calls(sets: Mapping[int, Table]) -> Iterator[SeedCall]:
    """Yield the calls that define the sets of a client id and mark their users. Keys are positions in the document."""
    names = {"codes": "codes", "names": "name", "indices": "index"}
    body = {name: [each[field] for each in sets.values()] for name, field in names.items()}
    yield SeedCall(("codes",), next(iter(sets.values())), "codes", body, method="PUT")
    for at, each in sets.items():
        index, marked = each["index"], each.get("marked", {})
        for number in dict.fromkeys(marked.values()):
            users = [user for user, codes in marked.items() if codes == number]
            grant = {"users": users, "prizes": [index] * number, "prize_limits": [0] * index + [number]}
            yield SeedCall(("codes", at, "marked"), each, "codes/mark_from_list", grant)


def count_records(seed: Seed) -> dict[str, int]:
    """Return how many records of each kind a seed has."""

    def total(kind: str, name: str) -> int:
        return sum(len(table[name]) for table in seed[kind])

    return {
        **{kind: len(seed[kind]) for kind in ("polls", "rankings", "buffers", "stores", "json_stores")},
        "votes": sum(len(votes) for poll in seed["polls"] for votes in poll["votes"].values()),
        "answers": total("rankings", "answers"),
        "entries": total("buffers", "entries"),
        "codes": total("codes", "codes"),
        **{kind: len(seed[kind]) for kind in ("links", "faults")},
    }


def make_ids(document: bytes) -> Callable[[], str]:
    """Return what makes the ids of stored things. They depend on the seed only, so that it can replace its own data."""
    digest, numbers = sha256(document).digest(), count()
    return lambda: sha256(digest + b"%d" % next(numbers)).hexdigest()[:_ID_LENGTH]


_BODY = Annotated[dict[str, Any], Meta(extra_json_schema=schema_of(SEED))]


class SeededLink(Struct):
    """A link that a seed made."""

    client_id: str
    channel_id: str
    refresh: str
    """The refresh token of a game. A later application of the same seed leaves it valid."""


class Seeded(Struct):
    """The numbers of records that a seed created."""

    now: int
    """The service's time in Unix ms."""
    counts: dict[str, int]
    """How many things of each kind."""
    links: list[SeededLink]
    """In the order of the seed."""


@dataclass(eq=False, repr=False)
class Seeds:
    """Seeds of one service."""

    _clock: Clock
    _open_scratch: Callable[[Clock, NewId], AbstractAsyncContextManager[Any]]
    """Opens an empty `app.Service` with a clock of its own."""
    _control: Control
    _faults: FaultPlan

    def __post_init__(self) -> None:
        self._applying = asyncio.Lock()

    @control_endpoint(
        "PUT", "/_emulator/seed", body=_BODY, answer=Seeded, limit="seed", streamed=True, secrets=frozenset({"*"})
    )
    async def apply_seed(self, call: Call) -> Seeded:
        """Put the data of a seed into the service: all of it, or nothing.

        Everything under the same ids is replaced; everything else stays. `extcli help seed` lists the fields. An error
        names the field, such as `polls[0].votes.U1`, and lists up to 20 problems. `extcli seed apply` sends files in
        TOML and reads the codes that they name.
        """
        return await self.apply(b"".join([chunk async for chunk in call.chunks]))

    async def apply(self, document: bytes) -> Seeded:
        """Put the data of a seed, a JSON document, into the service. Raises `BadRequest`, and `Conflict`."""
        seed = await asyncio.to_thread(read_seed, document)  # other requests continue during that time
        put_faults = self._faults.prepare(seed["faults"]) if seed["faults"] else None
        async with self._applying:
            # It stands still, so that all data have the same time, and equal seeds equal data.
            clock = Clock()
            clock.restore(ClockState(frozen_at=seed["clock"].get("at", self._clock.now())))
            async with self._open_scratch(clock, make_ids(document)) as scratch:
                with without_audit():
                    links = await _fill(scratch, seed)
                records = self._without_quotas(scratch.engine.dump(now=clock.now()))
                await self._control.load(records, replace=False, clock=self._new_clock(seed))
                if put_faults:
                    put_faults()
        counts = count_records(seed)
        facts: dict[str, Any] = {name: count for name, count in counts.items() if count}
        audit("seed applied", **facts)
        return Seeded(self._clock.now(), counts, links)

    async def _without_quotas(self, pages: AsyncIterator[Sequence[Record]]) -> AsyncIterator[Sequence[Record]]:
        """Leave out the records that count ids per extension.

        The service keeps its own counts, and counts an id when it is next used.
        """
        async for page in pages:
            notice(REPLACED, *(each.key for each in page if isinstance(each, DocumentRecord)))
            yield [each for each in page if not (isinstance(each, DocumentRecord) and is_quota_record(each.key))]

    def _new_clock(self, seed: Seed) -> ClockState | None:
        """Return the new state of the clock; `None` keeps it."""
        if not seed["clock"]:
            return None
        now = self._clock.now()
        at = seed["clock"].get("at", now)
        return ClockState(frozen_at=at) if seed["clock"].get("frozen") else ClockState(self._clock.offset + at - now)


async def _fill(scratch: Any, seed: Seed) -> list[SeededLink]:
    """Run all calls of a seed, and link its games. Raises `BadRequest` with the problems of all entries."""
    problems: dict[str, None] = {}
    for calls in calls_of(seed):
        await asyncio.sleep(0)
        for call in calls:
            try:
                await call.run(scratch)
            except ServiceError as error:
                problems |= dict.fromkeys(map(call.with_field, error.details))
                break
        if len(problems) >= MAX_PROBLEMS:
            break
    if problems:
        raise invalid_seed(problems=list(problems)[:MAX_PROBLEMS])
    links = []
    for number, link in enumerate(seed["links"]):
        client_id, channel_id = link["client_id"], link["channel"]
        owner = Caller(client_id, Role.BROADCASTER, channel_id, channel_id, opaque_id_of(channel_id))
        try:
            scratch.tokens.check_registered(client_id)
            links.append(SeededLink(client_id, channel_id, await scratch.pins.link(owner, channel_id)))
        except ServiceError as error:
            raise invalid_seed(problems=[f"links[{number}]: {error.detail}"]) from None
    return links
