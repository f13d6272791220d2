"""A half copy left by a killed fork or load is not damage: the file verifies, and so do its backups."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from emulator.engines.opening import open_engine
from emulator.engines.records import DocumentRecord, Record
from emulator.engines.sqlite import database
from emulator.engines.sqlite.files.backup import back_up, restore
from emulator.engines.sqlite.files.verification import facts_of_file, verify_file
from emulator.errors import EngineError
from engines.contract_dump import dumped, fill_all
from engines.shorthand import END, NOW, Open, cast, counts, key, read, write


@pytest.fixture
def open_alone(path: Path) -> Open:
    return partial(open_engine, f"sqlite://{path}", is_alone=True)


class Cut:
    """Records whose last ones never arrive."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records, self.is_stuck = records, asyncio.Event()

    async def pages(self) -> AsyncIterator[Sequence[Record]]:
        yield self.records
        self.is_stuck.set()
        await asyncio.Event().wait()


async def leave_half_copy(open_alone: Open, path: Path, namespace: str, records: Sequence[Record]) -> Path:
    """Return a copy of the file as a process leaves it that is killed while it fills a namespace."""
    copy = path.with_name("killed.db")
    async with open_alone(namespace=namespace) as engine:
        cut = Cut(records)
        loading = asyncio.create_task(engine.load(cut.pages(), replace=True))
        await cut.is_stuck.wait()
        back_up(str(path), copy, now=1, replace=True)
        loading.cancel()
        await asyncio.gather(loading, return_exceptions=True)
    return copy


async def all_records(open_alone: Open) -> list[Record]:
    async with open_alone(namespace="main") as engine:
        await fill_all(engine)
        return await dumped(engine)


@pytest.mark.parametrize("namespace", [pytest.param("main", marks=pytest.mark.long), "main/fork"])
async def test_a_half_copy_is_not_damage_before_during_and_after_its_deletion(
    open_alone: Open, path: Path, namespace: str
):
    records = await all_records(open_alone)
    counts = facts_of_file(str(path)).environments
    shutil.copy(await leave_half_copy(open_alone, path, namespace, records), path)

    assert [] == verify_file(str(path)).findings
    assert counts == facts_of_file(str(path)).environments
    async with open_alone(namespace="main") as engine:
        # The steps of `tidy`, with a look at the file after each.
        while await engine._group_commit.write(engine.purge._collect_some):
            assert [] == verify_file(str(path)).findings
        assert records == await dumped(engine)
    assert counts == facts_of_file(str(path)).environments


async def test_a_backup_of_a_file_with_a_half_copy_restores(open_alone: Open, path: Path, tmp_path: Path):
    records = await all_records(open_alone)
    backup = await leave_half_copy(open_alone, path, "main/fork", records)
    other = tmp_path / "other.db"

    restored = restore(str(backup), str(other), environments=("main",), now=1)

    assert restored.damage is None
    async with open_engine(f"sqlite://{other}", namespace="main") as engine:
        assert records == await dumped(engine)


async def test_an_opening_removes_the_half_copies_of_its_own_namespaces_only(open_alone: Open, path: Path):
    records = await all_records(open_alone)
    shutil.copy(await leave_half_copy(open_alone, path, "main/fork", records), path)

    async with open_engine(f"sqlite://{path}", namespace="main") as peer:
        await peer.tidy()
        assert "main/fork//loading" in names(path)  # another process may be making it now
    async with open_alone(namespace="other"), open_alone(namespace="mai"):
        assert "main/fork//loading" in names(path)
    async with open_alone(namespace="main"):
        assert "main/fork//loading" not in names(path)


async def test_an_opening_removes_what_a_killed_process_had_set_aside(open_alone: Open, path: Path):
    killed = path.with_name("killed.db")
    async with open_alone(namespace="main/x") as engine:
        await fill_all(engine)
        await engine.set_aside()
        back_up(str(path), killed, now=1, replace=False)
    shutil.copy(killed, path)

    assert [] == verify_file(str(path)).findings
    async with open_alone(namespace="main"):
        assert {"main", "main/x"} == names(path)


def names(path: Path) -> set[str]:

    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT namespace FROM spaces")}


RECORDS = [DocumentRecord(key(f"{number:03}"), END, b"new") for number in range(500)]


@pytest.fixture
def open(path: Path) -> Open:
    return partial(open_engine, f"sqlite://{path}")


class Halfway:
    """Records whose second page arrives when `proceed` is set."""

    def __init__(self) -> None:
        self.is_halfway, self.proceed = asyncio.Event(), asyncio.Event()

    async def pages(self) -> AsyncIterator[Sequence[Record]]:
        yield RECORDS[:250]
        self.is_halfway.set()
        await self.proceed.wait()
        yield RECORDS[250:]


async def test_an_interrupted_load_shows_nothing_and_an_opening_alone_removes_it(open: Open, path: Path):
    halfway = Halfway()
    async with open(namespace="main") as engine:
        await fill_all(engine)
        before = await dumped(engine)
        loading = asyncio.create_task(engine.load(halfway.pages(), replace=True))
        await halfway.is_halfway.wait()

        async with open(namespace="main", is_alone=True) as after_the_crash:
            assert before == await dumped(after_the_crash)
            await after_the_crash.tidy()
            with sqlite3.connect(path) as database:
                [(left,)] = database.execute("SELECT count(*) FROM documents WHERE value = ?", (b"new",)).fetchall()
            assert 0 == left

        halfway.proceed.set()
        with pytest.raises(EngineError, match="another process opened or loaded the same namespace"):
            await loading
        assert before == await dumped(engine)


async def test_a_load_that_starts_later_wins(open: Open):
    halfway = Halfway()
    async with open(namespace="main") as engine:
        loading = asyncio.create_task(engine.load(halfway.pages(), replace=True))
        await halfway.is_halfway.wait()

        async def other() -> AsyncIterator[Sequence[Record]]:
            yield [DocumentRecord(key("other"), END, b"1")]

        await engine.load(other(), replace=True)
        halfway.proceed.set()
        with pytest.raises(EngineError):
            await loading

        assert b"1" == await read(engine, key("other"))


async def test_casts_in_other_and_in_the_same_namespace_go_on_during_a_load(open: Open):
    halfway = Halfway()
    async with open(namespace="main") as engine, open(namespace="other") as other:
        loading = asyncio.create_task(engine.load(halfway.pages(), replace=True))
        await halfway.is_halfway.wait()

        await cast(other, "U1", "a")
        await cast(engine, "U1", "a")
        assert ([("a", 1)], [("a", 1)]) == (await counts(engine), await counts(other))
        halfway.proceed.set()
        await loading

        assert ([], [("a", 1)]) == (await counts(engine), await counts(other))
        assert RECORDS == await dumped(engine)


async def test_a_dump_shows_one_moment_while_writing_goes_on(open: Open):
    async with open(namespace="main") as engine:
        await engine.load(_pages(RECORDS), replace=True)
        found: list[Record] = []

        async for page in engine.dump(now=NOW):
            found += page
            await write(engine, b"later", key(f"later {len(found)}"))
            await write(engine, b"later", RECORDS[-1].key)

        assert RECORDS == found


async def test_commits_leave_a_long_log_to_the_thread_while_a_reader_needs_it(
    open: Open, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(database, "AUTOCHECKPOINT", 10)
    monkeypatch.setattr(database, "_SMALL_REST", 5)
    async with open(namespace="main") as engine:
        await engine.load(_pages(RECORDS), replace=True)
        copy_log = engine._database.checkpoints.copy_log_now  # type: ignore[attr-defined]
        connection = engine._group_commit.connection  # type: ignore[attr-defined]
        reading = engine.dump(now=NOW)
        await anext(reading)

        for record in RECORDS[:20]:
            await write(engine, b"later", record.key)
        await copy_log()
        assert (0,) == connection.execute("PRAGMA wal_autocheckpoint").fetchone()

        await reading.aclose()  # type: ignore[attr-defined]
        await copy_log()
        assert (10,) == connection.execute("PRAGMA wal_autocheckpoint").fetchone()


async def _pages(records: Sequence[Record]) -> AsyncIterator[Sequence[Record]]:
    yield records
