"""Applies a seed: all of it, or nothing.

The calls of a seed run on an empty scratch service with the settings and the key of the real one. So every rule of
every feature applies, and a refused call has changed nothing. Then, in one step, the scratch data is written to the
real service, where it replaces data under equal keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from emulator.control.faults import FaultPlan
from emulator.control.operation import Control
from emulator.control.seeds.plan import MAX_PROBLEMS, Seed, calls_of, counts_of, ids_of, invalid_seed, read_seed
from emulator.core.callers import Caller, Role, opaque_id_of
from emulator.core.clock import Clock, ClockState
from emulator.core.errors import ServiceError
from emulator.core.ids import NewId
from emulator.core.observability.audit import audit, without_audit
from emulator.core.observability.facts import REPLACED, notice
from emulator.features.id_quota import is_quota_record
from emulator.http.endpoint import Call, control_endpoint
from emulator.storage.records import DocumentRecord, Record


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
        "PUT",
        "/_emulator/seed",
        body=Seed,
        answer=Seeded,
        limit="seed",
        streamed=True,
        secrets=frozenset({"*"}),
    )
    async def apply_seed(self, call: Call) -> Seeded:
        """Put the data of a seed into the service: all of it, or nothing.

        Everything under the same ids is replaced; everything else stays. An error names the field, such as
        `polls[0].votes.U1`, and lists up to 20 problems. `extcli seed apply` sends files in TOML and reads the codes
        that they name.
        """
        return await self.apply(b"".join([chunk async for chunk in call.chunks]))

    async def apply(self, document: bytes) -> Seeded:
        """Put the data of a seed, a JSON document, into the service. Raises `BadRequest`, and `Conflict`."""
        seed = read_seed(document)
        put_faults = self._faults.prepare(seed.faults) if seed.faults else None
        async with self._applying:
            # It stands still, so that all data have the same time, and equal seeds equal data.
            clock = Clock()
            clock.restore(ClockState(frozen_at=self._clock.now() if seed.at is None else seed.at))
            async with self._open_scratch(clock, ids_of(document)) as scratch:
                with without_audit():
                    links = await _fill(scratch, seed)
                records = self._without_quotas(scratch.engine.dump(now=clock.now()))
                await self._control.load(records, replace=False, clock=self._new_clock(seed))
                if put_faults:
                    put_faults()
        counts = counts_of(seed)
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
        if seed.clock is None:
            return None
        now = self._clock.now()
        at = now if seed.at is None else seed.at
        return ClockState(frozen_at=at) if seed.clock.frozen else ClockState(self._clock.offset + at - now)


async def _fill(scratch: Any, seed: Seed) -> list[SeededLink]:
    """Run all calls of a seed, and link its games. Raises `BadRequest` with the problems of all entries."""
    problems: dict[str, None] = {}
    for calls in calls_of(seed):
        await asyncio.sleep(0)
        for call in calls:
            try:
                await scratch.dispatcher.run(call.method, call.path, call.caller, call.query, call.body)
            except ServiceError as error:
                problems |= dict.fromkeys(map(call.with_field, error.details))
                break
        if len(problems) >= MAX_PROBLEMS:
            break
    if problems:
        raise invalid_seed(problems=list(problems)[:MAX_PROBLEMS])
    links = []
    for number, link in enumerate(seed.links):
        client_id, channel_id = link.client_id or seed.client_id, link.channel or seed.channel
        owner = Caller(client_id, Role.BROADCASTER, channel_id, channel_id, opaque_id_of(channel_id))
        try:
            scratch.tokens.check_registered(client_id)
            links.append(SeededLink(client_id, channel_id, await scratch.pins.link(owner, channel_id)))
        except ServiceError as error:
            raise invalid_seed(problems=[f"links[{number}]: {error.detail}"]) from None
    return links
