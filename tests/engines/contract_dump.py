"""The contract of a dump: it holds everything, in one order, and what is loaded from it behaves as before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import accumulate

import pytest
from hypothesis import given, settings

from emulator.storage.engine import Engine
from emulator.storage.records import (
    BallotRecord,
    DocumentRecord,
    ItemRecord,
    ListItemsRecord,
    Record,
)
from engines.contract_purge import fill_shapes
from engines.histories import HISTORIES, SHARED, History, answers, replay
from engines.pool_shorthand import add_members, annotate, draw, draws, fill, source, stocked
from engines.pool_shorthand import drop as drop_pool
from engines.shorthand import (
    END,
    EVERYWHERE,
    MANY,
    NOW,
    ODD,
    Open,
    all_of,
    append,
    cast,
    choice_of,
    counts,
    entries,
    key,
    purged,
    write,
)
from support.examples import examples


async def dumped(engine: Engine, *, now: int = NOW) -> list[Record]:
    return await all_of(engine.dump(now=now))


async def pages(records: Sequence[Record], size: int = 300) -> AsyncIterator[Sequence[Record]]:
    for start in range(0, len(records), size):
        yield records[start : start + size]


async def load(engine: Engine, records: Sequence[Record], *, replace: bool = True, size: int = 300) -> None:
    await engine.load(pages(records, size), replace=replace)


async def reload(engine: Engine, *, now: int = NOW) -> None:
    """Replace everything in the namespace by its own dump."""
    await load(engine, await dumped(engine, now=now))


async def fill_all(engine: Engine) -> None:
    """Write some of every kind of record."""
    await fill_shapes(engine)
    await engine.ballots.define(key("many"), b"d", MANY, now=NOW, expires_at=END)
    for choice in ("a", "b"):
        await cast(engine, "U1", choice, key("many"), times=2)
    await fill(engine, [f"{number}" for number in range(205)], source("unused"))
    await stocked(engine, ["x", "y", "z"])
    await draw(engine, "U1")
    await drop_pool(engine)
    await stocked(engine, ["y", "z", "w"])
    await draw(engine, "U1")
    await draw(engine, "U2")
    for name in ("two", "one"):
        await add_members(engine, ["U1", "U2"], key(name))
        await annotate(engine, name.encode(), key(name))


class DumpContract:
    async def test_a_dump_leaves_out_what_has_expired(self, engine: Engine) -> None:
        await write(engine, b"1", expires_at=NOW)
        await cast(engine, "U1", "a", expires_at=NOW)
        await append(engine, b"1", expires_at=NOW)
        await append(engine, b"2", expires_at=NOW + 1)
        await stocked(engine, ["x"], expires_at=NOW)
        await add_members(engine, ["U1"], expires_at=NOW)

        assert [ItemRecord(key(), NOW, NOW + 1, b"2")] == await dumped(engine)

    async def test_a_dump_is_sorted_by_key_whatever_the_order_of_writing(self, engine: Engine) -> None:
        for name in reversed(ODD):
            await write(engine, b"1", key(name))
            await write(engine, b"1", key("n", user=name))
            await cast(engine, "U1", "a", key(name))

        records = await dumped(engine)

        documents = [record.key for record in records if isinstance(record, DocumentRecord)]
        assert 2 * len(ODD) == len(documents)
        assert sorted(documents) == documents
        ballots = [record.key for record in records if isinstance(record, BallotRecord)]
        assert len(ODD) == len(ballots)
        assert sorted(ballots) == ballots

    async def test_ties_across_channels_keep_their_order_after_a_load(self, engine: Engine) -> None:
        for voter, choice, channel in (("U1", "b", "y"), ("U2", "a", "x"), ("U1", "c", "x"), ("U3", "d", "y")):
            await cast(engine, voter, choice, key(channel=channel))
        before = await counts(engine, EVERYWHERE), await entries(engine, EVERYWHERE)

        await reload(engine)

        assert before == (await counts(engine, EVERYWHERE), await entries(engine, EVERYWHERE))
        assert "c" == await choice_of(engine, "U1", EVERYWHERE)

    async def test_a_dump_during_draws_lacks_only_items_that_were_drawn(self, engine: Engine) -> None:
        codes = [f"C{number}" for number in range(5_000)]
        await stocked(engine, codes)
        dumping, drawn = asyncio.create_task(dumped(engine)), list[str]()
        while not dumping.done():
            drawn += await draws(engine, 20, name=f"{len(drawn)}-")

        listed = [item for record in await dumping if isinstance(record, ListItemsRecord) for item in record.items]
        assert set(codes) - set(drawn) <= set(listed)
        assert len(set(listed)) == len(listed)
        assert drawn

    async def test_a_copy_is_equal_and_independent_where_the_engine_can_copy(self, engine: Engine, open: Open) -> None:
        await fill_all(engine)
        before = await dumped(engine)

        async with open(namespace="copy") as copy:
            await write(copy, b"1", key("other"))
            if not engine.can_copy:
                return
            await copy.load(engine.dump(now=NOW), replace=True)
            assert before == await dumped(copy)

            await cast(copy, "U9", "b")
            await cast(engine, "U8", "a")
            assert ([("a", 1)], [("b", 1)]) == (await counts(engine), await counts(copy))

    async def test_the_size_counts_records_and_not_their_contents(self, engine: Engine) -> None:
        for voter in ("U1", "U2"):
            await cast(engine, voter, "a")
            await append(engine, b"1")
            await add_members(engine, [voter])
        await write(engine, b"1")
        await fill(engine, ["a", "b"], source("unused"))
        await stocked(engine, ["a", "b"])

        assert 6 == await engine.size()
        await engine.reset()
        assert 0 == await engine.size()

    @pytest.mark.slow
    @settings(max_examples=examples(60), deadline=None, suppress_health_check=SHARED)
    @given(HISTORIES, HISTORIES)
    async def test_a_loaded_copy_dumps_and_behaves_the_same_after_any_history(
        self, engine: Engine, open: Open, before: History, after: History
    ) -> None:
        await engine.reset()
        now = await replay(engine, before)
        # Otherwise only the original reports what has expired before, also before the clock was set back.
        latest = max(accumulate((move for move, _, _ in before), initial=NOW))
        await purged(engine, now=latest)
        records = await dumped(engine, now=now)

        async with open(namespace="copy") as copy:
            await load(copy, records, size=7)

            assert records == await dumped(copy, now=now)
            assert await answers(engine, after, now) == await answers(copy, after, now)
            end = now + sum(move for move, _, _ in after)
            assert await dumped(engine, now=end) == await dumped(copy, now=end)
