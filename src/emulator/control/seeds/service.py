"""Applies a seed: all of it, or nothing.

The calls of a seed run on an empty scratch service with the settings and the key of the real one. So every rule of
every feature applies, and a refused call has changed nothing. Then, in one step, the scratch data is written to the
real service, where it replaces data under equal keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from emulator.callers import Caller
from emulator.clock import Clock
from emulator.control.seeds.refusals import invalid_seed
from emulator.engines.engine import Engine
from emulator.engines.records import DocumentRecord, Record
from emulator.errors import ServiceError
from emulator.ids import NewId
from emulator.limits.id_quota import is_quota_record
from emulator.observability.audit import audit

if TYPE_CHECKING:
    from emulator.control.seeds.rules import Plan


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


class Scratch(Protocol):
    """An empty service with a clock of its own."""

    @property
    def engine(self) -> Engine: ...

    async def perform(self, method: str, path: str, caller: Caller, query: Mapping[str, str], body: bytes) -> object:
        """Run an endpoint without checking a token; raises `ServiceError`."""

    async def link(self, caller: Caller, channel_id: str) -> str:
        """Link a game to a channel, and return its refresh token."""


OpenScratch = Callable[[Clock, NewId], AbstractAsyncContextManager[Scratch]]
Load = Callable[[AsyncIterator[Sequence[Record]], int | None, int | None], Awaitable[None]]
"""Writes records into the service in one step, with the offset of its clock in ms, or the instant at which it freezes.

With neither, the clock stays as it is. Raises `Forbidden` if the clock would move but cannot.
"""


PutFaults = Callable[[], None]
PrepareFaults = Callable[[Sequence[Mapping[str, Any]]], PutFaults]
"""Checks faults, and returns the function that adds them. Raises `BadRequest` that names all, and `Conflict`."""


@dataclass(eq=False, repr=False)
class Seeds:
    """Seeds of one service."""

    _clock: Clock
    _open_scratch: OpenScratch
    _load: Load
    _prepare_faults: PrepareFaults

    def __post_init__(self) -> None:
        self._applying = asyncio.Lock()

    async def apply(self, document: bytes) -> Seeded:
        """Put the data of a seed into the service.

        Raises `BadRequest` with all problems of the seed, `Forbidden` if the seed sets a clock that cannot be moved,
        and `Conflict` if it has faults and several processes serve the data. Then nothing has changed.
        """
        # Imported here, because it takes long and most services get no seed.
        from emulator.control.seeds.rules import plan_of

        plan = plan_of(document)
        put_faults = self._prepare_faults(plan.faults) if plan.faults else None
        async with self._applying:
            # It stands still, so that all data have the same time, and equal seeds equal data.
            clock = Clock()
            clock.restore(0, self._clock.now() if plan.at is None else plan.at)
            async with self._open_scratch(clock, plan.new_id) as scratch:
                await _perform(scratch, plan)
                links = await _link_games(scratch, plan)
                records = _without_quotas(scratch.engine.dump(now=clock.now()))
                await self._load(records, *self._new_clock(plan))
                if put_faults:
                    put_faults()
        facts: dict[str, Any] = {name: count for name, count in plan.counts.items() if count}
        audit("seed applied", **facts)
        return Seeded(self._clock.now(), plan.counts, links)

    def _new_clock(self, plan: Plan) -> tuple[int | None, int | None]:
        """Return the clock's new offset in ms, or the instant at which it is frozen. Two `None` keep the clock."""
        if plan.frozen is None:
            return None, None
        now = self._clock.now()
        at = now if plan.at is None else plan.at
        return (None, at) if plan.frozen else (self._clock.offset + at - now, None)


async def _perform(scratch: Scratch, plan: Plan) -> None:
    """Run all calls of a seed. Raises `BadRequest` with the problems of all entries."""
    from emulator.control.seeds.rules import MAX_PROBLEMS

    problems: dict[str, None] = {}
    for calls in plan.calls:
        await asyncio.sleep(0)
        for call in calls:
            try:
                await scratch.perform(call.method, call.path, call.caller, call.query, call.body)
            except ServiceError as error:
                problems |= dict.fromkeys(map(call.with_field, error.details))
                break
        if len(problems) >= MAX_PROBLEMS:
            break
    if problems:
        raise invalid_seed(problems=list(problems)[:MAX_PROBLEMS])


async def _link_games(scratch: Scratch, plan: Plan) -> list[SeededLink]:
    links = []
    for number, owner in enumerate(plan.links):
        channel_id = owner.channel_id or ""
        try:
            links.append(SeededLink(owner.client_id, channel_id, await scratch.link(owner, channel_id)))
        except ServiceError as error:
            raise invalid_seed(problems=[f"links[{number}]: {error.detail}"]) from None
    return links


async def _without_quotas(pages: AsyncIterator[Sequence[Record]]) -> AsyncIterator[Sequence[Record]]:
    """Leave out the records that count ids per extension.

    The service keeps its own counts, and counts an id when it is next used.
    """
    async for page in pages:
        yield [each for each in page if not (isinstance(each, DocumentRecord) and is_quota_record(each.key))]
