"""Files: the write-ahead log, other programs, failed commits, loads while others write, and what is tidied."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from emulator.core.errors import EngineError
from emulator.core.keys import NEVER
from emulator.storage.opening import open_medium
from emulator.storage.pools import Holding
from emulator.storage.records import DocumentRecord, Record
from emulator.storage.sqlite.tables import TABLES
from engines.contract_dump import dumped, load
from engines.database_files import opened
from engines.pool_shorthand import add_members, assign, draw, draws, drop, fill, held, listing, source, stocked
from engines.shorthand import END, NOW, LoopPasses, append, cast, choice_of, counts, entries, items, key, purged, read
from engines.shorthand import write as write_document


async def test_writes_reach_the_file_itself_while_it_is_open(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    async with opened(path) as engine, asyncio.timeout(10):
        await cast(engine, "U1", "a")
        while not _has_ballots(copy):
            await asyncio.sleep(0.01)
            shutil.copy(path, copy)  # without the write-ahead log


def _has_ballots(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as file, suppress(sqlite3.DatabaseError):  # a copy of half a write
        return bool(file.execute("SELECT 1 FROM ballots").fetchall())
    return False


async def test_a_write_waits_for_another_program_that_is_writing(path: Path) -> None:
    async with opened(path) as engine:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(cast(engine, "U1", "a"))
            for _ in range(20):
                await asyncio.sleep(0)
            assert not waiting.done()
            other.execute("COMMIT")

        assert (await waiting).refused is None


@pytest.mark.parametrize("event", ["INSERT ON items", "INSERT ON tallies", "INSERT ON entries", "INSERT ON handed"])
async def test_a_failed_commit_fails_all_its_writes_and_the_engine_recovers(path: Path, event: str) -> None:
    """A statement fails at once, with the operations before it; the counts of a cast are written at the commit."""
    async with opened(path) as engine, opened(path, "other") as other:
        await cast(engine, "U0", "a")
        await stocked(engine, "xyz")
        assert await draw(engine, "U0") == "x"
        failing = sqlite3.connect(path, isolation_level=None)
        failing.execute(f"CREATE TRIGGER full BEFORE {event} BEGIN SELECT RAISE(ABORT, 'disk full'); END")
        writes = [cast(engine, "U1", "b"), append(engine, b"1"), draw(engine, "U1")]
        last = {"INSERT ON items": 1, "INSERT ON entries": 0}.get(event, 2)
        writes.append(writes.pop(last))
        *written, found = await asyncio.gather(*writes, counts(engine), return_exceptions=True)

        assert [EngineError] * 3 == [type(each) for each in written]
        assert "disk full" in str(written[0])
        assert found == [("a", 1)]  # a read returns what was committed before
        assert await counts(engine) == [("a", 1)]
        assert (await items(engine), await held(engine, "U1"), await counts(other)) == ([], None, [])

        failing.execute("DROP TRIGGER full")
        failing.close()

        casts = [await cast(engine, voter, "b") for voter in ("U0", "U1")]
        assert ["a", None] == [each.previous for each in casts]
        assert casts[-1].tally.counts == (("b", 2),)
        assert len(await entries(engine)) == 2
        assert await draws(engine, 9, name="V") == ["y", "z"]


async def test_a_read_after_a_failed_write_needs_no_lock(path: Path) -> None:
    async with opened(path) as engine:
        await cast(engine, "U1", "a")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("CREATE TRIGGER full BEFORE INSERT ON items BEGIN SELECT RAISE(ABORT, 'disk full'); END")
            with pytest.raises(EngineError):
                await append(engine, b"1")
            other.execute("BEGIN IMMEDIATE")

            assert [1] == [each.casts for each in await engine.ballots.listing(key(), now=NOW, limit=9)]


async def test_a_failed_commit_undoes_the_writes_of_all_namespaces(path: Path) -> None:
    async with open_medium(f"sqlite://{path}") as medium, medium.engine("one") as one, medium.engine("two") as two:
        await cast(two, "U1", "a")
        with closing(sqlite3.connect(path, isolation_level=None)) as failing:
            failing.execute("CREATE TRIGGER full BEFORE INSERT ON items BEGIN SELECT RAISE(ABORT, 'disk full'); END")
        done = await asyncio.gather(cast(two, "U1", "b"), append(one, b"1"), return_exceptions=True)

        assert [EngineError, EngineError] == [type(each) for each in done]
        assert await choice_of(two, "U1") == "a"
        assert [entry.choice for entry in await entries(two)] == ["a"]


async def test_a_rollback_during_a_reading_does_not_affect_it(path: Path) -> None:
    voters = [f"U{number}" for number in range(1100)]
    async with opened(path) as engine:
        await asyncio.gather(*(cast(engine, voter, "a") for voter in voters))
        seen: list[str] = []
        async for page in engine.ballots.entries(key(), now=NOW):
            seen += [entry.voter for entry in page]
            nothing = {key(): None}
            results = await asyncio.gather(
                *(cast(engine, voter, "b", now=NOW + 1) for voter in voters),
                engine.documents.update([key()], lambda _, value=nothing: value, now=NOW, expires_at=NEVER),
                return_exceptions=True,
            )

            assert {type(each) for each in results} == {EngineError}

        assert seen == voters
        assert await counts(engine) == [("a", 1100)]


RECORDS = [DocumentRecord(key(f"{number:03}"), END, b"new") for number in range(500)]


class Halfway:
    """Records whose second page arrives when `proceed` is set."""

    def __init__(self) -> None:
        self.is_halfway, self.proceed = asyncio.Event(), asyncio.Event()

    async def pages(self) -> AsyncIterator[Sequence[Record]]:
        yield RECORDS[:250]
        self.is_halfway.set()
        await self.proceed.wait()
        yield RECORDS[250:]


async def test_a_load_that_starts_later_wins(path: Path) -> None:
    halfway = Halfway()
    async with opened(path) as engine:
        loading = asyncio.create_task(engine.load(halfway.pages(), replace=True))
        await halfway.is_halfway.wait()
        await load(engine, [DocumentRecord(key("other"), END, b"1")])
        halfway.proceed.set()
        with pytest.raises(EngineError):
            await loading

        assert b"1" == await read(engine, key("other"))


async def test_casts_in_other_and_in_the_same_namespace_go_on_during_a_load(path: Path) -> None:
    halfway, medium = Halfway(), open_medium(f"sqlite://{path}")
    async with medium.engine("main") as engine, medium.engine("other") as other:
        loading = asyncio.create_task(engine.load(halfway.pages(), replace=True))
        await halfway.is_halfway.wait()

        await cast(other, "U1", "a")
        await cast(engine, "U1", "a")
        assert ([("a", 1)], [("a", 1)]) == (await counts(engine), await counts(other))
        halfway.proceed.set()
        await loading

        assert ([], [("a", 1)]) == (await counts(engine), await counts(other))
        assert RECORDS == await dumped(engine)


async def test_a_dump_shows_one_moment_while_writing_goes_on(path: Path) -> None:
    async with opened(path) as engine:
        await load(engine, RECORDS)
        found: list[Record] = []

        async for page in engine.dump(now=NOW):
            found += page
            await write_document(engine, b"later", key(f"later {len(found)}"))
            await write_document(engine, b"later", RECORDS[-1].key)

        assert RECORDS == found


async def test_large_lists_and_rosters_do_not_block_the_event_loop(path: Path) -> None:
    codes, names = [f"code {n:06}" for n in range(100_000)], [f"{n * 7919 % 50_021}" for n in range(50_000)]
    async with opened(path) as engine:
        async with LoopPasses() as passes:
            for start in range(0, len(codes), 10_000):
                await fill(engine, codes[start : start + 10_000])
            for start in range(0, len(names), 1000):
                await add_members(engine, names[start : start + 1000])
            await assign(engine)

        assert passes.count >= 60
        assert codes[:3000] == await draws(engine, 3000)
        assert [await listing(engine, name) for name in (*names[::9999], "absent")] == [{"one"}] * 6 + [set()]

        await fill(engine, codes[2990:], source("next"))
        await assign(engine, {key(): source("next")})
        assert codes[3000:3010] == await draws(engine, 10, name="V")
        assert await drop(engine) == 3010
        await engine.rosters.drop([key()], now=NOW)
        async with LoopPasses() as passes:
            await engine.tidy()
        assert passes.count >= 50

        assert await held(engine, "7") == Holding((codes[7],), 0)
        await purged(engine, now=NEVER - 1)
        await engine.tidy()

    assert {"families": 1, "spent": 3010} == rows(path)


def rows(path: Path) -> dict[str, int]:
    """Count the rows of each table that belongs to namespaces, without the empty ones."""
    with closing(sqlite3.connect(path)) as file:
        names = [table.name for table in TABLES if table.name not in ("numbers", "spaces")]
        counted = {name: file.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
    return {name: count for name, count in counted.items() if count}


async def test_tidying_leaves_no_rows_of_dropped_reset_or_expired_records(path: Path) -> None:
    async with opened(path) as engine:
        await fill(engine, "abc")
        for name in ("dropped", "ended", "reset"):
            end = NOW + (5 if name == "ended" else 99)
            await cast(engine, "U1", "a", at=key(name), expires_at=end)
            await stocked(engine, "abc", key(name))
            await draw(engine, "U1", key(name))
            await add_members(engine, ["x"], key(name))
            await append(engine, b"1", key(name), expires_at=end)
            await write_document(engine, b"1", key(name), expires_at=end)
        casting = cast(engine, "U2", "a", at=key("dropped"))  # is not written yet when the ballot is dropped
        await asyncio.gather(casting, engine.ballots.drop(key("dropped"), now=NOW), engine.tidy())
        await drop(engine, key("dropped"))
        await engine.rosters.drop([key("dropped")], now=NOW)
        await engine.documents.drop([key("dropped")], now=NOW)
        await purged(engine, now=NOW + 5)
        await engine.reset()
        await engine.tidy()

    assert {} == rows(path)


async def test_a_roster_dropped_during_tidying_leaves_no_rows(path: Path) -> None:
    async with opened(path) as engine:
        for name in ("first", "second"):
            for start in range(0, 5000, 1000):
                await add_members(engine, [f"name {n}" for n in range(start, start + 1000)], key(name))
        await engine.rosters.drop([key("first")], now=NOW)
        tidying = asyncio.create_task(engine.tidy())
        while rows(path)["members"] > 8000:
            await engine.rosters.drop([], now=NOW)  # a write returns to the event loop
        await engine.rosters.drop([key("second")], now=NOW)
        await tidying

    assert {} == rows(path)
