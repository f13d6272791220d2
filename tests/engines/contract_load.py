"""The contract of a load: what it replaces, and what it leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from emulator.core.errors import EngineError
from emulator.core.keys import NEVER
from emulator.storage.engine import Engine
from emulator.storage.records import (
    BallotRecord,
    ChoiceRecord,
    DocumentRecord,
    EntryRecord,
    ItemRecord,
    Record,
)
from emulator.storage.shapes import BallotEntry, Terms
from engines.contract_dump import dumped, fill_all, load
from engines.shorthand import END, NOW, Open, append, cast, counts, items, key, read, write

BALLOT = BallotRecord(key(), END, None, Terms())
ENTRY = EntryRecord(key(), BallotEntry("U1", "a", 1, NOW, b""))


async def can_set_aside(engine: Engine) -> bool:
    """Return whether the engine can do it; if not, check that it says so and changes nothing."""
    if not engine.can_copy:
        await write(engine, b"1")
        before = await dumped(engine)
        with pytest.raises(EngineError):
            await engine.set_aside()
        with pytest.raises(EngineError):
            await engine.take_back()
        assert before == await dumped(engine)
    return engine.can_copy


class LoadContract:
    async def test_a_load_replaces_all_other_data(self, engine: Engine, open: Open) -> None:
        await fill_all(engine)
        async with open(namespace="copy") as copy:
            await write(copy, b"1", key("other"))
            await cast(copy, "U9", "z")
            await engine.load(copy.dump(now=NOW), replace=True)

            assert await dumped(copy) == await dumped(engine)
        await engine.tidy()
        assert [("z", 1)] == await counts(engine)

    async def test_a_load_without_replacing_leaves_other_keys_alone(self, engine: Engine) -> None:
        await write(engine, b"1", key("other"))
        await cast(engine, "U9", "z", key("other"))
        await cast(engine, "U9", "z")
        await append(engine, b"old")
        await append(engine, b"old", key("other"))
        new = [
            DocumentRecord(key("new"), NEVER, b"n"),
            BALLOT,
            ChoiceRecord(key(), "a"),
            ENTRY,
            ItemRecord(key(), NOW, END, b"new"),
        ]

        await load(engine, new, replace=False)

        assert (b"1", b"n") == (await read(engine, key("other")), await read(engine, key("new")))
        assert [("a", 1)] == await counts(engine)
        assert [("z", 1)] == await counts(engine, key("other"))
        assert [b"new"] == [item.value for item in await items(engine)]
        assert [b"old"] == [item.value for item in await items(engine, key("other"))]

    async def test_a_repeated_load_without_replacing_changes_nothing(self, engine: Engine, open: Open) -> None:
        await fill_all(engine)
        records = await dumped(engine)

        for _ in range(2):
            await load(engine, records, replace=False)
            assert records == await dumped(engine)

    async def test_a_load_that_is_interrupted_changes_nothing(self, engine: Engine) -> None:
        await fill_all(engine)
        before = await dumped(engine)

        async def broken() -> AsyncIterator[Sequence[Record]]:
            yield [DocumentRecord(key("new"), NEVER, b"n")]
            raise ConnectionResetError

        for replace in (True, False):
            with pytest.raises(ConnectionResetError):
                await engine.load(broken(), replace=replace)
            assert before == await dumped(engine)

    async def test_undo_restores_kept_data_and_drops_later_writes(self, engine: Engine) -> None:
        if not await can_set_aside(engine):
            return
        await fill_all(engine)
        before = await dumped(engine)

        await engine.set_aside()
        assert [] == await dumped(engine)
        await fill_all(engine)
        await write(engine, b"later", key("later"))
        await engine.take_back()

        assert before == await dumped(engine)

    async def test_a_second_reset_replaces_the_kept_data_and_a_drop_deletes_it(self, engine: Engine) -> None:
        if not await can_set_aside(engine):
            return
        for name in ("first", "second"):
            await write(engine, b"1", key(name))
            await engine.set_aside()
        await engine.take_back()
        assert [key("second")] == [record[0] for record in await dumped(engine)]

        await engine.set_aside()
        await engine.drop_aside()
        await engine.drop_aside()
        with pytest.raises(EngineError):
            await engine.take_back()
        await engine.tidy()
        assert 0 == await engine.size()

    async def test_a_copy_of_a_namespace_leaves_out_what_each_has_aside(self, engine: Engine, open: Open) -> None:
        if not await can_set_aside(engine):
            return
        async with open(namespace="copy") as copy:
            for each in (engine, copy):
                await load(each, [])
                await write(each, b"old", key("old"))
                await each.set_aside()
            await write(engine, b"new", key("new"))

            await copy.load(engine.dump(now=0), replace=True)

            assert await dumped(engine) == await dumped(copy)
            await copy.take_back()
            assert [key("old")] == [record[0] for record in await dumped(copy)]

    async def test_a_refused_take_back_does_not_undo_concurrent_writes(self, engine: Engine) -> None:
        if not await can_set_aside(engine):
            return
        await cast(engine, "U1", "a")

        _, refused = await asyncio.gather(cast(engine, "U2", "a"), engine.take_back(), return_exceptions=True)

        assert isinstance(refused, EngineError)
        assert await counts(engine) == [("a", 2)]
