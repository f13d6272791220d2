"""Applies a seed: all of it, or nothing.

The calls of a seed run on a scratch service, which is empty and has the settings and the key of the real one. So every
rule of every feature applies, and a refused call has changed nothing. Then the scratch data replace what the service
has under the same keys, in one step.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import Protocol

from msgspec import Struct

from emulator.callers import Caller, Role, opaque_id_of
from emulator.clock import Clock
from emulator.engines.engine import Engine
from emulator.engines.records import DocumentRecord, Record
from emulator.errors import BadRequest, ServiceError
from emulator.features.seeds.rules import VERSION, Seed, SeedLink, calls_of, counts_of, unix_ms
from emulator.ids import NewId
from emulator.limits.id_quota import is_quota_record
from emulator.wire import json_codec

_MAX_PROBLEMS = 20
_ID_LENGTH = 22


class SeededLink(Struct):
    """A link that a seed made."""

    client_id: str
    channel_id: str
    refresh: str
    """The refresh token of a game. A later application of the same seed leaves it valid."""


class Seeded(Struct):
    """What a seed put into the service."""

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


@dataclass(eq=False, repr=False)
class Seeds:
    """Seeds of one service."""

    _clock: Clock
    _open_scratch: OpenScratch
    _load: Load

    def __post_init__(self) -> None:
        self._applying = asyncio.Lock()

    async def apply_json(self, document: bytes) -> Seeded:
        """Apply a seed as `apply` does, from JSON."""
        return await self.apply(json_codec.decode(document, Seed))

    async def apply(self, seed: Seed) -> Seeded:
        """Put the data of a seed into the service. Raises `BadRequest` with all problems, and then changed nothing.

        Raises `Forbidden` for a seed with a clock, if the clock cannot be moved.
        """
        if seed.extcli != VERSION:
            raise BadRequest(
                "Invalid seed", f"extcli: this service reads version {VERSION} of seeds, not {seed.extcli}"
            )
        async with self._applying:
            # It stands still, so that all data have the same time, and equal seeds equal data.
            clock = Clock()
            clock.restore(0, unix_ms(seed.clock.at) if seed.clock and seed.clock.at else self._clock.now())
            async with self._open_scratch(clock, _ids_of(seed)) as scratch:
                await _perform(scratch, seed)
                links = [await _linked(scratch, seed, link) for link in seed.links]
                records = _without_quotas(scratch.engine.dump(now=clock.now()))
                await self._load(records, *self._clock_after(seed))
        return Seeded(self._clock.now(), counts_of(seed), links)

    def _clock_after(self, seed: Seed) -> tuple[int | None, int | None]:
        """Return the offset that a seed sets, or the instant at which it freezes the clock; `None` for the others."""
        if seed.clock is None:
            return None, None
        now = self._clock.now()
        at = unix_ms(seed.clock.at) if seed.clock.at else now
        return (None, at) if seed.clock.frozen else (self._clock.offset + at - now, None)


def _ids_of(seed: Seed) -> NewId:
    """Return a source of ids for a seed. It yields the same ids each time, so that a seed can replace its own data."""
    digest, number = sha256(json_codec.encode(seed)).digest(), count()
    return lambda: sha256(digest + b"%d" % next(number)).hexdigest()[:_ID_LENGTH]


async def _perform(scratch: Scratch, seed: Seed) -> None:
    """Run all calls of a seed. Raises `BadRequest` with the problems of all things."""
    problems: dict[str, None] = {}
    for calls in calls_of(seed):
        await asyncio.sleep(0)
        for call in calls:
            try:
                await scratch.perform(call.method, call.path, call.caller, call.query, call.body)
            except ServiceError as error:
                problems |= dict.fromkeys(map(call.located, error.details))
                break
        if len(problems) >= _MAX_PROBLEMS:
            break
    if problems:
        first, *others = list(problems)[:_MAX_PROBLEMS]
        raise BadRequest("Invalid seed", first, others=others)


async def _linked(scratch: Scratch, seed: Seed, link: SeedLink) -> SeededLink:
    client_id, channel = link.client_id or seed.client_id, link.channel or seed.channel
    owner = Caller(client_id, Role.BROADCASTER, channel, channel, opaque_id_of(channel))
    return SeededLink(client_id, channel, await scratch.link(owner, channel))


async def _without_quotas(pages: AsyncIterator[Sequence[Record]]) -> AsyncIterator[Sequence[Record]]:
    """Leave out the counts of ids: the service has its own, and counts an id of the seed when it is next used."""
    async for page in pages:
        yield [each for each in page if not (isinstance(each, DocumentRecord) and is_quota_record(each.key))]
