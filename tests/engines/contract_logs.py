"""The contract of logs."""

from __future__ import annotations

import asyncio

from emulator.engines.base import NEVER, Item
from emulator.engines.engine import Engine
from engines.shorthand import END, EVERYWHERE, NOW, ODD, LoopPasses, all_of, append, items, key, latest


class LogsContract:
    async def test_entries_come_newest_first(self, engine: Engine) -> None:
        for at in (5, 9, 2):
            await append(engine, b"%d" % at, now=NOW + at)

        assert [Item(NOW + 9, b"9"), Item(NOW + 5, b"5"), Item(NOW + 2, b"2")] == await items(engine)

    async def test_entries_of_the_same_time_come_in_reverse_order_of_arrival(self, engine: Engine) -> None:
        for value in (b"1", b"2", b"3"):
            await append(engine, value)

        assert [item.value for item in await items(engine)] == [b"3", b"2", b"1"]

    async def test_an_absent_log_reads_as_empty(self, engine: Engine) -> None:
        assert await latest(engine) == 0
        assert await items(engine) == []
        assert await items(engine, EVERYWHERE) == []

    async def test_a_log_stores_any_bytes(self, engine: Engine) -> None:
        values = [b"", b"\x00", b"\xff", "🎲".encode()]
        for value in values:
            await append(engine, value)

        assert values[::-1] == [item.value for item in await items(engine)]

    async def test_since_excludes_earlier_entries(self, engine: Engine) -> None:
        for number in range(4):
            await append(engine, b"%d" % number, now=NOW + number)

        assert [item.value for item in await items(engine, since=NOW + 2)] == [b"3", b"2"]

    async def test_latest_does_not_depend_on_since(self, engine: Engine) -> None:
        await append(engine, b"1", now=NOW)
        await append(engine, b"2", now=NOW + 7)

        assert await latest(engine) == NOW + 7
        assert await latest(engine, since=NOW + 8) == NOW + 7
        assert await items(engine, since=NOW + 8) == []

    async def test_each_entry_is_alive_until_just_before_its_own_expiry(self, engine: Engine) -> None:
        await append(engine, b"1", now=NOW, expires_at=END)
        await append(engine, b"2", now=NOW + 1, expires_at=END + 1)

        assert [item.value for item in await items(engine, now=END - 1)] == [b"2", b"1"]
        assert [item.value for item in await items(engine, now=END)] == [b"2"]
        assert await items(engine, now=END + 1) == []

    async def test_latest_is_the_time_of_the_newest_live_entry(self, engine: Engine) -> None:
        await append(engine, b"1", now=NOW, expires_at=END + 1)
        await append(engine, b"2", now=NOW + 7, expires_at=END)

        assert [await latest(engine, now=now) for now in (END - 1, END, END + 1)] == [NOW + 7, NOW, 0]

    async def test_a_long_log_is_read_completely_and_in_order(self, engine: Engine) -> None:
        await asyncio.gather(*(append(engine, b"%d" % n, now=NOW + n // 3) for n in range(2300)))

        pages = [page async for page in (await engine.logs.read(key(), now=NOW)).pages]

        assert [b"%d" % n for n in reversed(range(2300))] == [item.value for page in pages for item in page]
        assert max(map(len, pages)) <= 2000

    async def test_a_reading_excludes_later_entries(self, engine: Engine) -> None:
        await asyncio.gather(*(append(engine, b"old") for _ in range(2300)))
        await append(engine, b"old", key(channel="y"))
        span, everywhere = [await engine.logs.read(where, now=NOW) for where in (key(), EVERYWHERE)]
        await append(engine, b"new", now=NOW + 1)
        seen, seen_everywhere = [], []

        async for page in span.pages:
            seen += page
            await append(engine, b"new", now=NOW - 1)
        async for page in everywhere.pages:
            seen_everywhere += page
            await append(engine, b"new", key(channel="y"), now=NOW - 1)

        assert [item.value for item in seen] == [b"old"] * 2300
        assert [item.value for item in seen_everywhere] == [b"old"] * 2301

    async def test_the_event_loop_runs_between_pages(self, engine: Engine) -> None:
        await asyncio.gather(*(append(engine, b"1") for _ in range(2300)))

        span = await engine.logs.read(key(), now=NOW)
        async with LoopPasses() as passes:
            pages = [page async for page in span.pages]

        assert passes.count >= len(pages)

    async def test_logs_of_all_channels_are_read_as_one_in_order(self, engine: Engine) -> None:
        for number in range(30):
            await append(engine, b"%d" % number, key(channel=f"p{number % 3}"), now=NOW + number // 4)
        await append(engine, b"else", key("two"), now=NOW + 99)

        assert [b"%d" % n for n in reversed(range(30))] == [item.value for item in await items(engine, EVERYWHERE)]
        assert await latest(engine, EVERYWHERE) == NOW + 7
        since = await engine.logs.read(EVERYWHERE, now=NOW, since=NOW + 6)
        assert len(await all_of(since.pages)) == 6

    async def test_unusual_keys_stay_distinct(self, engine: Engine) -> None:
        for odd in ODD:
            await append(engine, odd.encode(), key(odd, channel=odd))

        assert [[odd.encode()] for odd in ODD] == [
            [item.value for item in await items(engine, key(odd, channel=odd))] for odd in ODD
        ]

    async def test_a_log_can_be_appended_to_after_all_its_entries_expired(self, engine: Engine) -> None:
        await append(engine, b"1", expires_at=END)
        await engine.purge(now=END)
        await append(engine, b"2", now=END, expires_at=NEVER)

        assert [Item(END, b"2")] == await items(engine, now=END)
