"""Files: several engines and processes on one, crashes, failed commits, and older formats."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from emulator.engines.opening import open_engine
from emulator.engines.shapes import NEVER, BallotEntry, CastRequest
from emulator.engines.sqlite import connection as connection_module
from emulator.engines.sqlite.schema import VERSION, create_or_raise
from emulator.errors import EngineError
from engines.child_process import COUNTER, POLL
from engines.database_files import go, make_older, opened, process
from engines.shorthand import NOW, Listener, append, cast, choice_of, counts, entries, items, key, read, write


async def test_written_data_is_there_after_reopening_the_file(path: Path) -> None:
    async with opened(path) as engine:
        await cast(engine, "U1", "a")
        await write(engine, b"1")
        await append(engine, b"2")

    async with opened(path) as engine:
        assert await counts(engine) == [("a", 1)]
        assert await read(engine) == b"1"
        assert [item.value for item in await items(engine)] == [b"2"]
        assert (await cast(engine, "U1", "b")).previous == "a"


async def test_writes_reach_the_file_itself_while_it_is_open(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    async with opened(path) as engine, asyncio.timeout(10):
        await cast(engine, "U1", "a")
        while not _has_ballots(copy):
            await asyncio.sleep(0.01)
            shutil.copy(path, copy)  # without the write-ahead log


def _has_ballots(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as file, suppress(sqlite3.OperationalError):
        return bool(file.execute("SELECT 1 FROM ballots").fetchall())
    return False


async def test_a_read_that_fails_in_sqlite_raises_an_engine_error_and_the_next_one_works(path: Path) -> None:
    async with opened(path) as engine:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("ALTER TABLE documents RENAME TO moved")
            with pytest.raises(EngineError, match="no such table: documents"):
                await read(engine)

            other.execute("ALTER TABLE moved RENAME TO documents")
            assert await read(engine) is None


async def test_two_engines_on_one_file_act_as_one(path: Path) -> None:
    async with opened(path) as one, opened(path) as two:
        for number in range(4):
            await cast((one, two)[number % 2], f"U{number}", "ab"[number // 2])

            assert await counts(one) == await counts(two)

        await asyncio.gather(*(cast(each, f"V{n}", "c") for n in range(50) for each in (one, two)))

        assert (await counts(one))[0] == (await counts(two))[0] == ("c", 50)

        await two.reset()

        assert await counts(one) == []
        assert (await cast(one, "U1", "b")).tally.counts == (("b", 1),)
        assert await choice_of(two, "U1") == "b"


async def test_a_namespace_that_another_engine_dropped_is_empty_and_usable(path: Path) -> None:
    async with opened(path) as one:
        await cast(one, "U1", "a")
        await write(one, b"1")
        async with opened(path) as two:
            await two.drop()

        assert ([], None) == (await counts(one), await read(one))
        assert (await cast(one, "U2", "b")).tally.counts == (("b", 1),)
        await one.tidy()
        async with opened(path) as three:
            assert await counts(three) == [("b", 1)]


async def test_two_processes_on_one_new_file_lose_nothing(path: Path) -> None:
    times = 400
    with process("share", path, "x", times) as one, process("share", path, "y", times) as two:
        go(one, two)

        assert [each.wait() for each in (one, two)] == [0, 0]

    async with opened(path) as engine:
        tallied = dict(await counts(engine, POLL))
        found = await entries(engine, POLL)
        assert await read(engine, COUNTER) == b"%d" % (2 * times)
        assert len(found) == 3 * times
        assert tallied == {name: sum(entry.choice == name for entry in found) for name in ("x", "y")}
        assert all(entry.choice == entry.voter[0] for entry in found if not entry.voter.startswith("both"))


async def test_many_processes_can_create_a_file_at_once(path: Path) -> None:
    with ExitStack() as running:
        processes = [running.enter_context(process("share", path, str(number), 20)) for number in range(4)]
        go(*processes)

        assert [each.wait() for each in processes] == [0] * 4

    async with opened(path) as engine:
        assert await read(engine, COUNTER) == b"80"


@pytest.mark.parametrize("count", [1, 150, 350, 600, 900])
async def test_no_acknowledged_write_is_lost_when_the_process_is_killed(path: Path, count: int) -> None:
    """SIGKILL comes after `count` acknowledged writes, during the next ones."""
    with process("acknowledge", path, "U", 50_000) as running:
        go(running)
        assert running.stdout
        acknowledged = [int(running.stdout.readline()) for _ in range(count)]
        running.kill()
        running.wait()
        # The last line may be incomplete.
        acknowledged += [int(line) for line in running.stdout.read().splitlines(keepends=True) if line.endswith("\n")]

    assert len(acknowledged) < 50_000
    async with opened(path) as engine:
        found = await entries(engine, POLL)
        assert {f"U{number}" for number in acknowledged} <= {entry.voter for entry in found}
        assert {b"%d" % number for number in acknowledged} <= {item.value for item in await items(engine, POLL)}
        documents = [COUNTER._replace(user=str(number)) for number in acknowledged]
        assert len(await engine.documents.read(documents, now=0)) == len(acknowledged)
        assert sum(count for _, count in await counts(engine, POLL)) == len(found)


async def test_a_reading_is_a_snapshot_while_another_engine_casts(path: Path) -> None:
    voters = [f"U{number}" for number in range(2300)]
    async with opened(path) as one, opened(path) as two:
        await asyncio.gather(*(cast(one, voter, "a") for voter in voters))
        seen: list[str] = []

        async for page in one.ballots.entries(key(), now=NOW):
            seen += [entry.voter for entry in page]
            await asyncio.gather(*(cast(two, voter, "b", now=NOW + 1) for voter in voters[::3]))

        assert seen == voters


async def test_a_write_waits_for_child_process_that_is_writing(path: Path) -> None:
    async with opened(path) as engine:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(cast(engine, "U1", "a"))
        for _ in range(20):
            await asyncio.sleep(0)

        assert not waiting.done()

        other.execute("COMMIT")
        other.close()

        assert (await waiting).refused is None


@pytest.mark.parametrize("table", ["items", "tallies"])
async def test_a_failed_commit_fails_all_its_writes_and_the_engine_recovers(path: Path, table: str) -> None:
    """A log entry fails at once, a tally at the commit."""
    async with opened(path) as engine:
        await cast(engine, "U0", "a")
        failing = sqlite3.connect(path, isolation_level=None)
        failing.execute(f"CREATE TRIGGER full BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'disk full'); END")

        results = await asyncio.gather(
            cast(engine, "U1", "b"), append(engine, b"1"), counts(engine), return_exceptions=True
        )

        assert [type(each) for each in results[:2]] == [EngineError] * 2
        assert "disk full" in str(results[0])
        assert results[2] == [("a", 1)]  # a read returns what was committed before
        assert await counts(engine) == [("a", 1)]
        assert await items(engine) == []

        failing.execute("DROP TRIGGER full")
        failing.close()

        assert (await cast(engine, "U1", "b")).tally.counts == (("a", 1), ("b", 1))
        assert len(await entries(engine)) == 2


@pytest.mark.parametrize("url", ["sqlite://", "sqlite://{path}"])
async def test_a_rollback_during_a_reading_does_not_affect_it(path: Path, url: str) -> None:
    voters = [f"U{number}" for number in range(1500)]
    async with open_engine(url.format(path=path), namespace="main") as engine:
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
        assert await counts(engine) == [("a", 1500)]


async def test_tidying_deletes_the_rows_of_dropped_reset_or_expired_records(path: Path) -> None:
    async with opened(path) as engine:
        for poll in ("dropped", "ended", "reset"):
            await cast(engine, "U1", "a", at=key(poll), expires_at=NOW + (5 if poll == "ended" else 99))
        await engine.ballots.drop(key("dropped"), now=NOW)
        await engine.purge(now=NOW + 5)
        await engine.reset()

        await engine.tidy()

    with sqlite3.connect(path) as connection:
        counts_by_table = {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("ballots", "marks", "tallies", "dead", "dead_spaces")
        }
    assert dict.fromkeys(counts_by_table, 0) == counts_by_table


async def test_a_file_of_format_1_is_migrated_and_keeps_its_data(path: Path) -> None:
    async with opened(path) as engine:
        await cast(engine, "U1", "a")
        await write(engine, b"1")
        await append(engine, b"2")
    make_older(path, 1)

    async with opened(path) as engine, opened(path) as other:
        assert await counts(engine) == [("a", 1)]
        assert await read(engine) == b"1"
        assert [item.value for item in await items(engine)] == [b"2"]
        assert (await cast(engine, "U1", "b")).previous == "a"
        listener = Listener(other)
        await engine.relay.publish(key(), b"3")
        await listener.has(1)

    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)


async def test_several_processes_can_migrate_a_file_at_once(path: Path) -> None:
    async with opened(path):
        pass
    make_older(path, 1)

    with ExitStack() as running:
        processes = [running.enter_context(process("publish", path, str(number), 5)) for number in range(4)]
        go(*processes)

        assert [each.wait() for each in processes] == [0] * 4

    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (20,)
    assert len(list(path.parent.glob("data.db.format-1-*"))) == 1


async def test_notes_from_before_format_6_are_never_joined(path: Path) -> None:
    async with opened(path) as engine:
        for voter in ("U1", "U2"):
            await engine.ballots.cast(key(), CastRequest(voter, "a", b"old", whole=True), now=NOW, expires_at=NEVER)
    make_older(path, 5)

    async with opened(path) as engine:
        await engine.ballots.cast(key(), CastRequest("U2", "b", b"new", whole=True), now=NOW + 1, expires_at=NEVER)
        some = [page async for page in engine.ballots.notes(key(), now=NOW, separator=b",")]
        later = [page async for page in engine.ballots.notes(key(), now=NOW, since=NOW + 1, separator=b",")]

        assert some == [[BallotEntry("U1", "a", 1, NOW, b"old"), BallotEntry("U2", "b", 1, NOW + 1, b"new")]]
        assert later == [b"new"]


@pytest.mark.parametrize("raised_by_the_other", [True, False])
async def test_an_engine_waits_while_another_process_upgrades_the_format(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, raised_by_the_other: bool
) -> None:
    async with opened(path):
        pass
    make_older(path, VERSION - 1)
    monkeypatch.setattr(connection_module, "PAUSES", ())
    monkeypatch.setattr(connection_module, "_RAISE_PAUSE", 0)
    logged = asyncio.Event()
    monkeypatch.setattr(caplog.handler, "handle", lambda record: logged.set() or caplog.handler.emit(record))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with caplog.at_level(logging.INFO, "emulator.engines"):
        opening = asyncio.create_task(opened(path).__aenter__())
        await asyncio.wait_for(logged.wait(), 10)
        if raised_by_the_other:
            create_or_raise(other, VERSION - 1, "")
            other.execute("COMMIT")
        other.close()
        engine = await opening
        await engine.__aexit__()

    assert 1 == caplog.text.count("waiting for another process, which raises its format")
    assert raised_by_the_other == (f"raised from format {VERSION - 1}" not in caplog.text)
    with closing(sqlite3.connect(path)) as connection:
        assert (VERSION,) == connection.execute("PRAGMA user_version").fetchone()
