"""The contract of logs."""

from __future__ import annotations

import asyncio

from emulator.core.keys import NEVER, Key
from emulator.storage.engine import Engine
from emulator.storage.shapes import CastRequest, ListedBallot, ListedLog, LogEntry, Terms
from engines.shorthand import (
    END,
    EVERYWHERE,
    MANY,
    NOW,
    ODD,
    all_of,
    append,
    cast,
    items,
    key,
    latest,
    purged,
)


async def ballots(engine: Engine, group: Key = EVERYWHERE, *, now: int = NOW, limit: int = 999) -> list[Key]:
    return [listed.key for listed in await engine.ballots.listing(group, now=now, limit=limit)]


async def logs(engine: Engine, group: Key = EVERYWHERE, *, now: int = NOW, limit: int = 999) -> list[Key]:
    return [listed.key for listed in await engine.logs.listing(group, now=now, limit=limit)]


async def fill(engine: Engine, keys: list[Key], *, expires_at: int = END) -> None:
    """Write a ballot and a log for each key."""
    for each in keys:
        await cast(engine, "U1", "3", each, expires_at=expires_at)
        await append(engine, b"1", each, expires_at=expires_at)


SORTED = [key(name, channel=channel) for channel in ("", "c", "c1", "d") for name in ("a", "a1", "b")]


class LogsContract:
    async def test_entries_come_newest_first(self, engine: Engine) -> None:
        for at in (5, 9, 2):
            await append(engine, b"%d" % at, now=NOW + at)

        assert [LogEntry(NOW + 9, b"9"), LogEntry(NOW + 5, b"5"), LogEntry(NOW + 2, b"2")] == await items(engine)

    async def test_entries_of_the_same_time_come_in_reverse_order_of_arrival(self, engine: Engine) -> None:
        for value in (b"1", b"2", b"3"):
            await append(engine, value)

        assert [item.value for item in await items(engine)] == [b"3", b"2", b"1"]

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
        await asyncio.gather(*(append(engine, b"%d" % n, now=NOW + n // 3) for n in range(1100)))

        pages = [page async for page in (await engine.logs.read(key(), now=NOW)).pages]

        assert [b"%d" % n for n in reversed(range(1100))] == [item.value for page in pages for item in page]
        assert max(map(len, pages)) <= 2000

    async def test_a_reading_excludes_later_entries(self, engine: Engine) -> None:
        await asyncio.gather(*(append(engine, b"old") for _ in range(1100)))
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

        assert [item.value for item in seen] == [b"old"] * 1100
        assert [item.value for item in seen_everywhere] == [b"old"] * 1101

    async def test_logs_of_all_channels_are_read_as_one_in_order(self, engine: Engine) -> None:
        for number in range(30):
            await append(engine, b"%d" % number, key(channel=f"p{number % 3}"), now=NOW + number // 4)
        await append(engine, b"else", key("two"), now=NOW + 99)

        assert [b"%d" % n for n in reversed(range(30))] == [item.value for item in await items(engine, EVERYWHERE)]
        assert await latest(engine, EVERYWHERE) == NOW + 7
        since = await engine.logs.read(EVERYWHERE, now=NOW, since=NOW + 6)
        assert len(await all_of(since.pages)) == 6

    async def test_a_log_can_be_appended_to_after_all_its_entries_expired(self, engine: Engine) -> None:
        await append(engine, b"1", expires_at=END)
        await purged(engine, now=END)
        await append(engine, b"2", now=END, expires_at=NEVER)

        assert [LogEntry(END, b"2")] == await items(engine, now=END)

    async def test_a_listing_leaves_out_other_kinds_and_owners(self, engine: Engine) -> None:
        await fill(engine, [key("a"), key("a", owner="else"), key("a")._replace(kind="else")])

        assert [key("a")] == await ballots(engine) == await logs(engine)

    async def test_a_page_continues_after_the_last_key(self, engine: Engine) -> None:
        await fill(engine, SORTED)

        for group in (EVERYWHERE, key(channel="c")):
            expected = [each for each in SORTED if group.channel in (None, each.channel)]
            for shape in (engine.ballots, engine.logs):
                pages: list[list[Key]] = []
                while not pages or pages[-1]:
                    after = pages[-1][-1] if pages else None
                    pages.append([one.key for one in await shape.listing(group, now=NOW, limit=2, after=after)])
                assert expected == [one for page in pages for one in page]
                assert max(map(len, pages)) == 2

    async def test_the_last_key_may_have_been_dropped_meanwhile(self, engine: Engine) -> None:
        await fill(engine, SORTED)
        await engine.ballots.drop(SORTED[3], now=NOW)

        rest = await engine.ballots.listing(EVERYWHERE, now=NOW, limit=99, after=SORTED[3])
        assert SORTED[4:] == [listed.key for listed in rest]

    async def test_a_page_is_full_although_a_ballot_is_dropped_while_it_is_read(self, engine: Engine) -> None:
        await fill(engine, SORTED)

        listing = asyncio.create_task(ballots(engine, limit=6))
        await asyncio.sleep(0)
        await engine.ballots.drop(SORTED[5], now=NOW)

        assert 6 == len(await listing)

    async def test_a_listed_ballot_has_its_casts_expiry_and_definition(self, engine: Engine) -> None:
        await engine.ballots.define(key("a"), b"poll", MANY, now=NOW, expires_at=END)
        await cast(engine, "U1", "3", key("a"), times=2, expires_at=END + 1)
        await cast(engine, "U1", "4", key("a"), times=3, expires_at=END + 2)
        await cast(engine, "U2", "4", key("a"), expires_at=END + 3)
        await engine.ballots.define(key("b"), b"empty", Terms(), now=NOW, expires_at=END)
        for choice in "345":
            await cast(engine, "U1", choice, key("c"))

        assert [
            ListedBallot(key("a"), 6, END + 3, b"poll"),
            ListedBallot(key("b"), 0, END, b"empty"),
            ListedBallot(key("c"), 1, END, None),
        ] == await engine.ballots.listing(key(), now=NOW, limit=9)

    async def test_a_listed_log_has_its_live_entries_and_latest(self, engine: Engine) -> None:
        await append(engine, b"1", now=NOW, expires_at=END)
        await append(engine, b"2", now=NOW + 5, expires_at=END + 1)
        await append(engine, b"3", now=NOW + 9, expires_at=END)

        assert [ListedLog(key(), 3, NOW + 9)] == await engine.logs.listing(key(), now=NOW, limit=9)
        assert [ListedLog(key(), 1, NOW + 5)] == await engine.logs.listing(key(), now=END, limit=9)

    async def test_large_ballots_and_logs_are_counted_completely(self, engine: Engine) -> None:
        async def add(number: int) -> None:
            await engine.ballots.cast(key(), CastRequest(f"U{number}", f"{number}"), now=NOW, expires_at=END)
            await append(engine, b"1", now=NOW + number // 7)

        await asyncio.gather(*map(add, range(3000)))

        assert [3000] == [listed.casts for listed in await engine.ballots.listing(key(), now=NOW, limit=9)]
        assert [3000] == [listed.entries for listed in await engine.logs.listing(key(), now=NOW, limit=9)]

    async def test_expired_and_dropped_records_are_not_listed(self, engine: Engine) -> None:
        await fill(engine, [key("a"), key("b")])
        await fill(engine, [key("c")], expires_at=END + 1)
        await engine.ballots.drop(key("b"), now=NOW)

        for _ in range(2):  # before and after the purge
            assert [key("c")] == await ballots(engine, now=END) == await logs(engine, now=END)
            assert [key("c")] == await ballots(engine, now=END, limit=1) == await logs(engine, now=END, limit=1)
            await purged(engine, now=END)
        assert [] == await ballots(engine, now=END + 1) == await logs(engine, now=END + 1)

    async def test_a_record_that_starts_again_is_listed_once(self, engine: Engine) -> None:
        await fill(engine, [key()])
        await fill(engine, [key()], expires_at=END + 1)
        await cast(engine, "U1", "3", now=END + 1, expires_at=END + 9)
        await append(engine, b"2", now=END + 1, expires_at=END + 9)
        await purged(engine, now=END + 1)

        assert [key()] == await ballots(engine, now=END + 1) == await logs(engine, now=END + 1)

    async def test_records_with_unusual_keys_are_listed_once_each(self, engine: Engine) -> None:
        keys = [key(odd, channel=channel, user=odd) for odd in (*ODD, "a|b", "%00", "|") for channel in (odd, "")]
        await fill(engine, keys)

        for found in (await ballots(engine), await logs(engine)):
            assert (len(set(keys)), set(keys)) == (len(found), set(found))
        for each in keys:
            assert each in await ballots(engine, each)
            after = await engine.ballots.listing(EVERYWHERE, now=NOW, limit=999, after=each)
            assert each not in [listed.key for listed in after]
