"""Files: several engines and processes on one, sudden death, and files that cannot be used."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator.engines import open_engine
from emulator.engines.base import NEVER
from emulator.engines.sqlite.relay import MAX_ROWS
from emulator.engines.sqlite.schema import VERSION
from emulator.errors import EngineError
from engines.another_process import COUNTER, POLL
from engines.database_files import go, make_older, opened, process
from engines.shorthand import NOW, WITHIN, Listener, append, cast, choice_of, counts, entries, items, key, read, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


async def test_what_was_written_is_there_when_the_file_is_opened_again(path: Path) -> None:
    async with opened(path) as engine:
        await cast(engine, "U1", "a")
        await write(engine, b"1")
        await append(engine, b"2")

    async with opened(path) as engine:
        assert await counts(engine) == [("a", 1)]
        assert await read(engine) == b"1"
        assert [item.value for item in await items(engine)] == [b"2"]
        assert (await cast(engine, "U1", "b")).previous == "a"


async def test_two_engines_on_one_file_are_as_one(path: Path) -> None:
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


async def test_two_processes_on_one_new_file_lose_nothing(path: Path) -> None:
    times = 400
    with process("share", path, "x", times) as one, process("share", path, "y", times) as two:
        go(one, two)

        assert [each.wait() for each in (one, two)] == [0, 0]

    async with opened(path) as engine:
        tallied = dict(await counts(engine, POLL))
        entered = await entries(engine, POLL)
        assert await read(engine, COUNTER) == b"%d" % (2 * times)
        assert len(entered) == 3 * times
        assert tallied == {name: sum(entry.choice == name for entry in entered) for name in ("x", "y")}
        assert all(entry.choice == entry.voter[0] for entry in entered if not entry.voter.startswith("both"))


async def test_many_processes_may_make_a_new_file_at_once(path: Path) -> None:
    with ExitStack() as running:
        processes = [running.enter_context(process("share", path, str(number), 20)) for number in range(4)]
        go(*processes)

        assert [each.wait() for each in processes] == [0] * 4

    async with opened(path) as engine:
        assert await read(engine, COUNTER) == b"80"


@pytest.mark.parametrize("patience", [1, 150, 350, 600, 900])
async def test_no_acknowledged_write_is_lost_when_the_process_is_killed(path: Path, patience: int) -> None:
    """SIGKILL comes after `patience` acknowledged writes, in the midst of the next ones."""
    with process("acknowledge", path, "U", 50_000) as running:
        go(running)
        assert running.stdout
        acknowledged = [int(running.stdout.readline()) for _ in range(patience)]
        running.kill()
        running.wait()
        # A line may be cut short by death; what is cut was not said.
        acknowledged += [int(line) for line in running.stdout.read().splitlines(keepends=True) if line.endswith("\n")]

    assert len(acknowledged) < 50_000
    async with opened(path) as engine:
        entered = await entries(engine, POLL)
        assert {f"U{number}" for number in acknowledged} <= {entry.voter for entry in entered}
        assert {b"%d" % number for number in acknowledged} <= {item.value for item in await items(engine, POLL)}
        documents = [COUNTER._replace(user=str(number)) for number in acknowledged]
        assert len(await engine.documents.read(documents, now=0)) == len(acknowledged)
        assert sum(count for _, count in await counts(engine, POLL)) == len(entered)


async def test_a_reading_keeps_its_promise_while_another_engine_casts(path: Path) -> None:
    voters = [f"U{number}" for number in range(2300)]
    async with opened(path) as one, opened(path) as two:
        await asyncio.gather(*(cast(one, voter, "a") for voter in voters))
        seen: list[str] = []

        async for page in one.ballots.entries(key(), now=NOW):
            seen += [entry.voter for entry in page]
            await asyncio.gather(*(cast(two, voter, "b", now=NOW + 1) for voter in voters[::3]))

        assert seen == voters


async def test_a_write_waits_for_another_process_that_is_writing(path: Path) -> None:
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
async def test_a_failed_turn_fails_for_all_of_it_and_the_engine_stays_usable(path: Path, table: str) -> None:
    """An entry fails at once, a tally at the commit."""
    async with opened(path) as engine:
        await cast(engine, "U0", "a")
        failing = sqlite3.connect(path, isolation_level=None)
        failing.execute(f"CREATE TRIGGER full BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'disk full'); END")

        done = await asyncio.gather(
            cast(engine, "U1", "b"), append(engine, b"1"), counts(engine), return_exceptions=True
        )

        assert [type(each) for each in done[:2]] == [EngineError] * 2
        assert "disk full" in str(done[0])
        assert done[2] == [("a", 1)]  # who only reads is answered with what was committed
        assert await counts(engine) == [("a", 1)]
        assert await items(engine) == []

        failing.execute("DROP TRIGGER full")
        failing.close()

        assert (await cast(engine, "U1", "b")).tally.counts == (("a", 1), ("b", 1))
        assert len(await entries(engine)) == 2


@pytest.mark.parametrize("url", ["sqlite://", "sqlite://{path}"])
async def test_a_reading_is_right_when_a_turn_is_undone_meanwhile(path: Path, url: str) -> None:
    voters = [f"U{number}" for number in range(1500)]
    async with open_engine(url.format(path=path), namespace="main") as engine:
        await asyncio.gather(*(cast(engine, voter, "a") for voter in voters))
        seen: list[str] = []
        async for page in engine.ballots.entries(key(), now=NOW):
            seen += [entry.voter for entry in page]
            nothing = {key(): None}
            undone = await asyncio.gather(
                *(cast(engine, voter, "b", now=NOW + 1) for voter in voters),
                engine.documents.update([key()], lambda _, value=nothing: value, now=NOW, expires_at=NEVER),
                return_exceptions=True,
            )

            assert {type(each) for each in undone} == {EngineError}

        assert seen == voters
        assert await counts(engine) == [("a", 1500)]


async def test_tidying_gives_back_the_room_of_what_was_dropped_reset_or_ended(path: Path) -> None:
    async with opened(path) as engine:
        for poll in ("dropped", "ended", "reset"):
            await cast(engine, "U1", "a", at=key(poll), expires_at=NOW + (5 if poll == "ended" else 99))
        await engine.ballots.drop(key("dropped"), now=NOW)
        await engine.purge(now=NOW + 5)
        await engine.reset()

        await engine.tidy()

    with sqlite3.connect(path) as connection:
        left = {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("ballots", "marks", "tallies", "dead", "dead_spaces")
        }
    assert dict.fromkeys(left, 0) == left


async def test_messages_go_from_one_process_to_another(path: Path) -> None:
    async with opened(path) as engine:
        with process("hear", path, "", 100) as running:
            go(running)
            assert running.stdout
            assert await asyncio.to_thread(running.stdout.readline) == "listening\n"
            for number in range(100):
                await engine.relay.publish(POLL, b"%d" % number)

            said, _ = await asyncio.to_thread(running.communicate, timeout=10)

    assert said.splitlines() == [str(number) for number in range(100)]


async def test_messages_of_several_processes_come_each_ones_in_order(path: Path) -> None:
    async with opened(path) as engine:
        listener = Listener(engine)
        with process("tell", path, "x", 200) as one, process("tell", path, "y", 200) as two:
            go(one, two)
            await listener.has(400)

    heard = [message.decode() for _, message in listener.heard]
    assert {POLL} == {topic for topic, _ in listener.heard}
    for name in ("x", "y"):
        assert [f"{name}{number}" for number in range(200)] == [each for each in heard if each.startswith(name)]


async def test_of_messages_only_the_newest_are_kept_in_the_file(path: Path) -> None:
    async with opened(path) as engine:
        for _ in range(3):
            await asyncio.gather(*(engine.relay.publish(key(), b"1") for _ in range(MAX_ROWS // 2)))

    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*), max(number) FROM messages").fetchone() == (
            MAX_ROWS,
            3 * MAX_ROWS // 2,
        )


async def test_a_file_without_messages_is_given_them_and_keeps_its_data(path: Path) -> None:
    """What format 1 lacked."""
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


async def test_several_processes_may_bring_an_older_file_up_to_date_at_once(path: Path) -> None:
    async with opened(path):
        pass
    make_older(path, 1)

    with ExitStack() as running:
        processes = [running.enter_context(process("tell", path, str(number), 5)) for number in range(4)]
        go(*processes)

        assert [each.wait() for each in processes] == [0] * 4

    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (20,)


async def test_a_file_that_is_locked_for_a_while_delays_messages_and_loses_none(path: Path) -> None:
    async with opened(path) as engine, opened(path) as other:
        listener = Listener(other)
        await engine.relay.publish(key(), b"1")
        await listener.has(1)
        locking = sqlite3.connect(path, isolation_level=None)
        locking.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(engine.relay.publish(key(), b"2"))
        for _ in range(20):
            await asyncio.sleep(0)

        assert (waiting.done(), len(listener.heard)) == (False, 1)

        locking.execute("COMMIT")
        locking.close()

        await waiting
        await listener.has(2)

    assert [b"1", b"2"] == [message for _, message in listener.heard]


async def test_messages_that_cannot_be_read_for_a_while_are_warned_of_and_come_later(path: Path) -> None:
    async with opened(path) as engine, opened(path) as other:
        listener, warned = Listener(other), asyncio.Event()
        broken = sqlite3.connect(path, isolation_level=None)
        broken.execute("ALTER TABLE messages RENAME TO moved")
        loop = asyncio.get_running_loop()
        logger, handler = logging.getLogger("emulator.engines"), logging.Handler()
        handler.emit = lambda record: loop.call_soon(warned.set)  # type: ignore[method-assign]
        logger.addHandler(handler)
        try:
            async with asyncio.timeout(WITHIN):
                await warned.wait()
        finally:
            logger.removeHandler(handler)
        broken.execute("ALTER TABLE moved RENAME TO messages")
        broken.close()

        await engine.relay.publish(key(), b"1")
        await listener.has(1)
