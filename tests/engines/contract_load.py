"""The contract of a load: what it replaces, what it leaves alone and what it refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from emulator.engines.base import NEVER, Entry, Terms
from emulator.engines.engine import Engine
from emulator.engines.records import (
    BallotRecord,
    ChoiceRecord,
    DocumentRecord,
    EntryRecord,
    ItemRecord,
    ListItemsRecord,
    ListRecord,
    Record,
    RosterRecord,
)
from engines.contract_dump import dumped, fill_all, load, reload
from engines.pool_shorthand import draw, source, stocked
from engines.shorthand import END, NOW, Open, append, cast, counts, items, key, read, write

BALLOT = BallotRecord(key(), END, None, Terms())
ENTRY = EntryRecord(key(), Entry("U1", "a", 1, NOW, b""), False)


class LoadContract:
    async def test_a_load_replaces_everything_else(self, engine: Engine, open: Open) -> None:
        await fill_all(engine)
        async with open(namespace="copy") as copy:
            await write(copy, b"1", key("other"))
            await cast(copy, "U9", "z")
            await engine.load(copy.dump(now=NOW), replace=True)

            assert await dumped(copy) == await dumped(engine)
        await engine.tidy()
        assert [("z", 1)] == await counts(engine)

    async def test_a_user_has_no_more_items_of_a_pool_after_a_load(self, engine: Engine) -> None:
        await stocked(engine, "abcdef")
        assert ["a", "b", "c"] == [await draw(engine, user, most=2) for user in ("U1", "U2", "U1")]

        await reload(engine)

        assert [None, "d", None] == [await draw(engine, user, most=2) for user in ("U1", "U2", "U2")]

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

    @pytest.mark.parametrize("replace", [True, False])
    @pytest.mark.parametrize(
        "records",
        [
            [ENTRY],
            [BALLOT, BALLOT],
            [BALLOT, DocumentRecord(key(), END, b"")],
            [BALLOT._replace(key=key("b")), BALLOT._replace(key=key("a"))],
            [BALLOT, ENTRY, ChoiceRecord(key(), "a")],
            [BALLOT, ENTRY, ENTRY._replace(entry=Entry("U2", "a", (1 << 53) - 1, NOW, b""))],
            [ListRecord(source(), END), ListItemsRecord(source(), ("a\0b",))],
            [RosterRecord(key(channel=None), END)],
            [DocumentRecord(key("\ud800"), END, b"")],
            [DocumentRecord(key(), -1, b"")],
            [DocumentRecord(key(), NEVER + 1, b"")],
        ],
        ids=lambda records: records[-1].__class__.__name__,
    )
    async def test_records_that_cannot_be_are_refused_and_nothing_changes(
        self, engine: Engine, records: list[Record], replace: bool
    ) -> None:
        await write(engine, b"1")
        before = await dumped(engine)

        with pytest.raises(ValueError, match=r"\w"):
            await load(engine, records, replace=replace, size=1)

        assert before == await dumped(engine)
