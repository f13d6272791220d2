"""Generated schedules: writers of every shape during housekeeping, resets, loads and copies, with each write checked.

A schedule is made from its seed: which writes follow each other in each task, how many passes of the event loop lie
between them, and what disturbs them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from emulator.core.errors import EngineError
from emulator.storage.engine import Engine
from emulator.storage.records import (
    BallotRecord,
    DocumentRecord,
    EntryRecord,
    HandedRecord,
    ItemRecord,
    ListRecord,
    MemberRecord,
    PoolRecord,
    Record,
    RosterRecord,
)
from emulator.storage.shapes import CastRequest, Terms
from engines.pool_shorthand import add_members, assign, draw, fill, source, stocked
from engines.shorthand import END, MANY, NOW, Open, all_of, append, keep, key, purged, write

WRITERS, DISTURBANCES = 10, 6
LEAST, MOST = 8, 60
"""Writes of each writer: it goes on while the schedule is disturbed."""
_SHAPES_AT_ONCE = 4
SOON = NOW + 5
"""The expiry of what is written to expire."""
_PURGED = NOW + 10

Disturbance = Callable[[], Awaitable[None]]


@dataclass(eq=False)
class Acknowledged:
    shape: str
    trace: tuple[object, ...]
    """What a dump must hold, or for a removal must not."""


class Schedule:
    def __init__(self, engine: Engine, other: Engine, seed: int, more: Mapping[str, Disturbance]) -> None:
        """`other` is another namespace of the same data; `more` are disturbances that only this engine has."""
        self._engine, self._other, self._seed = engine, other, seed
        self._random = random.Random(seed)
        self._more = more
        self.writes: list[Acknowledged] = []
        self.lost: list[str] = []
        self._steps = self._replaced_at = self._stocks = 0
        self._shapes = self._random.sample(_SHAPES, _SHAPES_AT_ONCE)
        self._replaces = self._random.random() < 0.5
        """Whether the disturbances include those that replace everything."""
        self._is_disturbed = True

    async def run(self) -> None:
        await self._engine.reset()
        await self._other.reset()
        await write(self._other, b"1", key("loaded"))
        await self._prepare()
        await asyncio.gather(*(self._writer(number) for number in range(WRITERS)), self._disturb())
        await self.check("at the end", self._engine)

    async def _prepare(self) -> None:
        """Create what all writers share, and what they remove."""
        self._stocks += 1
        items = [f"{self._seed}.{self._stocks}.{number}" for number in range(WRITERS * MOST)]
        await stocked(self._engine, items, key(f"pool {self._stocks}"))
        await self._engine.ballots.define(key("many"), b"", MANY, now=NOW, expires_at=END)

    async def _writer(self, writer: int) -> None:
        for number in range(MOST):
            if number >= LEAST and not self._is_disturbed:
                return
            for _ in range(self._random.choice((0, 0, 0, 1, 2, 3))):
                await asyncio.sleep(0)
            shape = self._random.choice(self._shapes)
            self._steps += 1
            begun = self._steps
            try:
                trace = await _write(self._engine, shape, f"{writer}.{number}", self._stocks)
            except EngineError:
                continue
            if trace and begun > self._replaced_at:
                self.writes.append(Acknowledged(shape, trace))

    async def _disturb(self) -> None:
        options: dict[str, Disturbance] = {
            "purge": self._purge,
            "tidy": self._engine.tidy,
            "merge": self._merge,
            **self._more,
        }
        if self._engine.can_copy:
            options["fork"] = self._fork
        if self._replaces:
            options |= {"reset": self._reset, "load": self._load}
        if self._replaces and self._engine.can_copy:
            options |= {"undo": self._undo}
        names = ["purge", "purge", *options]
        for _ in range(DISTURBANCES):
            for _ in range(self._random.randrange(4)):
                await asyncio.sleep(0)
            await options[self._random.choice(names)]()
        self._is_disturbed = False

    async def _purge(self) -> None:
        await asyncio.gather(*(write(self._engine, b"1", key(f"soon {n}"), expires_at=SOON) for n in range(3)))
        await append(self._engine, b"1", key("soon"), expires_at=SOON)
        await purged(self._engine, now=_PURGED)

    async def _reset(self) -> None:
        await self._replacing(self._engine.reset())

    async def _load(self) -> None:
        await self._replacing(self._engine.load(self._other.dump(now=NOW), replace=True))

    async def _undo(self) -> None:
        """Empty the namespace and take back what it held: no write before is lost, and those between are replaced."""
        before = list(self.writes)
        await self._replacing(self._engine.set_aside())
        await self._replacing(self._engine.take_back())
        self.writes += before

    async def _merge(self) -> None:
        await self._engine.load(self._other.dump(now=NOW), replace=False)

    async def _replacing(self, operation: Awaitable[None]) -> None:
        """Replace everything. Only writes that begin after the end of this count."""
        self._replaced_at = 1 << 40
        self.writes.clear()
        await operation
        await self._prepare()
        self._replaced_at = self._steps

    async def _fork(self) -> None:
        before = list(self.writes)
        await self._other.load(self._engine.dump(now=NOW), replace=True)
        await self.check("in the copy", self._other, before)
        await self._other.reset()
        await write(self._other, b"1", key("loaded"))

    async def check(self, where: str, engine: Engine, writes: Sequence[Acknowledged] | None = None) -> None:
        """Note which writes, or all acknowledged ones, an engine has lost."""
        seen = {trace for record in await all_of(engine.dump(now=NOW)) if (trace := _trace(record))}
        for one in self.writes if writes is None else writes:
            is_removal = one.shape.startswith(("dropped", "discarded"))
            is_lost = (one.trace in seen) is is_removal
            if one.shape == "kept":
                is_lost |= not await engine.documents.peek(key(str(one.trace[1])), now=NOW)
            if is_lost:
                self.lost.append(f"seed {self._seed}, {where}: {one.shape} {one.trace}")


def _trace(record: Record) -> tuple[object, ...] | None:
    """Return what identifies a record, or `None` for one that is a part of another."""
    match record:
        case EntryRecord(ballot, entry):
            return "cast", ballot.name, entry.voter
        case ItemRecord(log, _, _, value):
            return "item", log.name, value
        case HandedRecord(pool, _, user, item):
            return "handed", pool.name, user, item
        case MemberRecord(roster, member):
            return "member", roster.name, member
        case PoolRecord(of, _, _, None, _):
            return "closed", of.name
        case DocumentRecord() | BallotRecord() | ListRecord() | PoolRecord() | RosterRecord():
            return type(record).__name__, record.key.name
        case _:
            return None


_SHAPES = (
    *("document", "kept", "dropped document", "cast", "added cast", "definition", "dropped ballot", "item", "list"),
    *("discarded list", "pool", "dropped pool", "draw", "member", "dropped roster"),
)


async def _write(engine: Engine, shape: str, name: str, stock: int) -> tuple[object, ...] | None:
    """Write, and return what a dump must hold, or for a removal must not."""
    match shape:
        case "document":
            await write(engine, b"1", key(f"d{name}"))
            return "DocumentRecord", f"d{name}"
        case "kept":
            await keep(engine, {key(f"k{name}"): b"1"}, replace=len(name) % 2 == 0)
            return "DocumentRecord", f"k{name}"
        case "dropped document":
            await write(engine, b"1", key(f"x{name}"))
            await engine.documents.drop([key(f"x{name}")], now=NOW)
            return "DocumentRecord", f"x{name}"
        case "cast" | "added cast":
            poll = "poll" if shape == "cast" else "many"
            await engine.ballots.cast(key(poll), CastRequest(name, name[-1]), now=NOW, expires_at=END)
            return "cast", poll, name
        case "definition":
            await engine.ballots.define(key(f"b{name}"), b"1", Terms(), now=NOW, expires_at=END)
            return "BallotRecord", f"b{name}"
        case "dropped ballot":
            await engine.ballots.cast(key(f"y{name}"), CastRequest(name, "a"), now=NOW, expires_at=END)
            await engine.ballots.drop(key(f"y{name}"), now=NOW)
            return "BallotRecord", f"y{name}"
        case "item":
            await append(engine, name.encode(), key("log"))
            return "item", "log", name.encode()
        case "list":
            await fill(engine, [name], source(f"l{name}"))
            return "ListRecord", f"l{name}"
        case "discarded list":
            await fill(engine, [name], source(f"z{name}"))
            await engine.pools.discard([source(f"z{name}")], now=NOW)
            return "ListRecord", f"z{name}"
        case "pool":
            await assign(engine, {key(f"p{name}"): source(f"of p{name}")})
            return "PoolRecord", f"p{name}"
        case "dropped pool":
            await assign(engine, {key(f"w{name}"): source(f"of w{name}")})
            await engine.pools.drop([key(f"w{name}")], now=NOW)
            return "PoolRecord", f"w{name}"
        case "draw":
            item = await draw(engine, name, key(f"pool {stock}"))
            return ("handed", f"pool {stock}", name, item) if item else None
        case "member":
            await add_members(engine, [name], key("roster"))
            return "member", "roster", name
        case _:
            await add_members(engine, [name], key(f"v{name}"))
            await engine.rosters.drop([key(f"v{name}")], now=NOW)
            return "RosterRecord", f"v{name}"


class AcknowledgedContract:
    schedules = 8
    """How many are generated; their seeds count from 0."""

    @pytest.fixture
    def disturbances(self, engine: Engine) -> Mapping[str, Disturbance]:
        """What may run during writes only on this engine."""
        return {}

    @pytest.mark.slow
    async def test_no_schedule_loses_an_acknowledged_write(
        self, engine: Engine, open: Open, disturbances: Mapping[str, Disturbance]
    ) -> None:
        acknowledged = 0
        async with open(namespace="other") as other:
            for seed in range(self.schedules):
                schedule = Schedule(engine, other, seed, disturbances)
                await schedule.run()
                if engine.survives_restart:
                    async with open(namespace="main") as again:
                        await schedule.check("after reopening", again)
                assert [] == schedule.lost
                acknowledged += len(schedule.writes)
        assert acknowledged
