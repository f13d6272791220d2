"""The relay on SQLite: messages between processes that share a file."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from pathlib import Path

import pytest

from emulator.engines.shapes import Key
from emulator.engines.sqlite import relay
from emulator.engines.sqlite.relay import MAX_ROWS
from engines.child_process import POLL
from engines.database_files import go, opened, process
from engines.shorthand import WITHIN, Listener, key


async def test_messages_go_from_one_process_to_another(path: Path) -> None:
    async with opened(path) as engine:
        with process("listen", path, "", 100) as running:
            go(running)
            assert running.stdout
            assert await asyncio.to_thread(running.stdout.readline) == "listening\n"
            for number in range(100):
                await engine.relay.publish(POLL, b"%d" % number)

            output, _ = await asyncio.to_thread(running.communicate, timeout=10)

    assert output.splitlines() == [str(number) for number in range(100)]


async def test_messages_of_each_process_arrive_in_order(path: Path) -> None:
    async with opened(path) as engine:
        listener = Listener(engine)
        with process("publish", path, "x", 200) as one, process("publish", path, "y", 200) as two:
            go(one, two)
            await listener.has(400)

    bodies = [message.decode() for _, message in listener.received]
    assert {POLL} == {topic for topic, _ in listener.received}
    for name in ("x", "y"):
        assert [f"{name}{number}" for number in range(200)] == [each for each in bodies if each.startswith(name)]


async def test_messages_arrive_after_a_time_without_any(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "POLL_INTERVAL", 0)  # one look at the file in each pass of the event loop
    async with opened(path) as engine, opened(path) as other:
        listener = Listener(other)
        for number in (1, 2):
            await engine.relay.publish(key(), b"%d" % number)
            await listener.has(number)
            for _ in range(20):
                await asyncio.sleep(0)

    assert [b"1", b"2"] == [message for _, message in listener.received]


async def test_messages_arrive_after_one_whose_delivery_failed(path: Path) -> None:
    def fail(_: Key, message: bytes) -> None:
        if message == b"1":
            raise RuntimeError("a defect of a listener")

    async with opened(path) as engine, opened(path) as other:
        other.relay.listen(fail)
        listener = Listener(other)
        await engine.relay.publish(key(), b"1")
        await engine.relay.publish(key(), b"2")
        await listener.has(1)

    assert [(key(), b"2")] == listener.received


async def test_only_the_newest_messages_stay_in_the_file(path: Path) -> None:
    async with opened(path) as engine:
        for _ in range(3):
            await asyncio.gather(*(engine.relay.publish(key(), b"1") for _ in range(MAX_ROWS // 2)))

    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*), max(number) FROM messages").fetchone() == (
            MAX_ROWS,
            3 * MAX_ROWS // 2,
        )


async def test_a_locked_file_delays_messages_and_loses_none(path: Path) -> None:
    async with opened(path) as engine, opened(path) as other:
        listener = Listener(other)
        await engine.relay.publish(key(), b"1")
        await listener.has(1)
        locking = sqlite3.connect(path, isolation_level=None)
        locking.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(engine.relay.publish(key(), b"2"))
        for _ in range(20):
            await asyncio.sleep(0)

        assert (waiting.done(), len(listener.received)) == (False, 1)

        locking.execute("COMMIT")
        locking.close()

        await waiting
        await listener.has(2)

    assert [b"1", b"2"] == [message for _, message in listener.received]


async def test_a_failure_to_read_messages_is_logged_and_loses_none(path: Path) -> None:
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
