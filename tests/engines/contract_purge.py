"""The contract of housekeeping: it reports correctly and changes no result."""

from __future__ import annotations

import asyncio
import random

import pytest

from emulator.core.keys import NEVER, Expired
from emulator.storage.engine import Engine
from emulator.storage.records import ListRecord
from emulator.storage.shapes import CastRequest, Terms
from engines.pool_shorthand import add_members, assign, fill, listing, source
from engines.shorthand import (
    NOW,
    Open,
    append,
    cast,
    choice_of,
    counts,
    entries,
    items,
    key,
    latest,
    purged,
    read,
    write,
)

NAMES = ("early", "late", "never")
ENDS = {"early": NOW + 10, "late": NOW + 20, "never": NEVER}


async def fill_shapes(engine: Engine) -> None:
    """For each name, write a document, a ballot, a defined ballot and a log, in two channels."""
    for name in NAMES:
        for channel in ("x", "y"):
            where = key(name, channel=channel)
            await write(engine, b"1", where, expires_at=ENDS[name])
            await engine.ballots.define(where._replace(user="d"), b"d", Terms(), now=NOW, expires_at=ENDS[name])
            for voter in ("U1", "U2"):
                await cast(engine, voter, "a", where, expires_at=ENDS[name])
            await append(engine, b"1", where, expires_at=ENDS[name])
            await append(engine, b"2", where, now=NOW + 1, expires_at=NOW + 15)


async def read_all(engine: Engine, now: int) -> list[object]:
    """Return the results of every read operation on what `fill` wrote."""
    results: list[object] = []
    for name in NAMES:
        for where in (key(name, channel="x"), key(name, channel="y")):
            results.append(await read(engine, where, now=now))
            results.append(await engine.documents.users(where, after="", limit=9, now=now))
            results.append(await engine.ballots.definition(where._replace(user="d"), now=now))
        for channel in ("x", "y", None):
            where = key(name, channel=channel)
            results.append(await counts(engine, where, now=now))
            results.append(await choice_of(engine, "U1", where, now=now))
            results.append(await entries(engine, where, now=now))
            results.append(await items(engine, where, now=now))
            results.append(await latest(engine, where, now=now))
    return results


DAY = 24 * 3_600_000
LIFETIME = 7 * DAY
SCHEDULES, STEPS = 12, 8

KINDS = ("document", "cast", "definition", "log", "list", "pool", "roster")


async def write_kind(engine: Engine, kind: str, now: int, end: int) -> None:
    """Write a thing of this kind at a time, with an expiry."""
    match kind:
        case "document":
            await write(engine, b"%d" % end, now=now, expires_at=end)
        case "cast":
            await engine.ballots.cast(key(kind), CastRequest(f"U{end}", "a"), now=now, expires_at=end)
        case "definition":
            await engine.ballots.define(key(kind), b"%d" % end, Terms(), now=now, expires_at=end)
        case "log":
            await append(engine, b"1", key(kind), now=now, expires_at=end)
        case "list":
            await fill(engine, [f"{end}"], source(kind), now=now, expires_at=end)
        case "pool":
            await assign(engine, {key(kind): source(f"of {kind}")}, now=now, expires_at=end)
        case _:
            await add_members(engine, ["U1"], key(kind), now=now, expires_at=end)


async def is_alive(engine: Engine, kind: str, now: int) -> bool:
    match kind:
        case "document":
            return await read(engine, now=now) is not None
        case "cast":
            return bool((await engine.ballots.tally(key(kind), now=now)).counts)
        case "definition":
            return await engine.ballots.definition(key(kind), now=now) is not None
        case "log":
            return (await engine.logs.read(key(kind), now=now)).latest != 0
        case "list":
            records = [record async for page in engine.dump(now=now) for record in page]
            return any(isinstance(record, ListRecord) and record.key == source(kind) for record in records)
        case "pool":
            return bool(await engine.pools.stocks([key(kind)], now=now))
        case _:
            return bool(await listing(engine, "U1", now=now))


class PurgeContract:
    async def test_a_purge_does_not_change_any_result(self, engine: Engine) -> None:
        for at in (NOW + 9, NOW + 10, NOW + 15, NOW + 9999):
            await engine.reset()
            await fill_shapes(engine)
            before = [await read_all(engine, now) for now in (at, at + 5, NOW + 20)]

            await purged(engine, now=at)
            await engine.tidy()

            assert before == [await read_all(engine, now) for now in (at, at + 5, NOW + 20)]

    async def test_a_purge_reports_expirations_in_order(self, engine: Engine) -> None:
        await write(engine, b"1", key("document"), expires_at=NOW + 3)
        await cast(engine, "U1", "a", key("ballot"), expires_at=NOW + 1)
        await engine.ballots.define(key("defined"), b"", Terms(), now=NOW, expires_at=NOW + 2)
        await append(engine, b"1", key("log"), expires_at=NOW + 4)
        await write(engine, b"1", key("later"), expires_at=NOW + 5)

        assert [
            Expired(key("ballot"), NOW + 1),
            Expired(key("defined"), NOW + 2),
            Expired(key("document"), NOW + 3),
            Expired(key("log"), NOW + 4),
        ] == await purged(engine, now=NOW + 4)

    async def test_each_expiry_is_reported_once(self, engine: Engine) -> None:
        await fill_shapes(engine)

        first, again, rest = [await purged(engine, now=now) for now in (NOW + 15, NOW + 15, NOW + 20)]

        assert (len(first), again, len(rest)) == (12, [], 8)

    async def test_a_log_is_reported_once_with_the_newest_removed_expiry(self, engine: Engine) -> None:
        for end in (3, 5, 4, 9):
            await append(engine, b"1", now=NOW + end, expires_at=NOW + 10 + end)

        assert [Expired(key(), NOW + 15)] == await purged(engine, now=NOW + 16)
        assert [Expired(key(), NOW + 19)] == await purged(engine, now=NOW + 19)

    async def test_the_last_report_of_a_long_log_is_of_its_newest_entry(self, engine: Engine) -> None:
        await asyncio.gather(
            *(append(engine, b"1", now=NOW + number, expires_at=NOW + 2000 + number) for number in range(600))
        )

        reported = [each async for page in engine.purge(now=NOW + 9999) for each in page]
        assert (Expired(key(), NOW + 2599), {key()}) == (reported[-1], {each.key for each in reported})
        assert await items(engine) == []

    async def test_dropped_records_are_not_reported(self, engine: Engine) -> None:
        await fill_shapes(engine)
        await engine.documents.drop([key(name, channel=channel) for name in NAMES for channel in "xy"], now=NOW)
        for name in NAMES:
            await engine.ballots.drop(key(name, channel=None), now=NOW)
            await engine.ballots.drop(key(name, channel=None, user="d"), now=NOW)

        logs = [key(name, channel=channel) for name in NAMES for channel in "xy"]
        assert sorted(logs) == sorted(one.key for one in await purged(engine, now=NOW + 99))

    async def test_records_before_a_reset_are_not_reported(self, engine: Engine) -> None:
        await fill_shapes(engine)
        await engine.reset()

        assert await purged(engine, now=NOW + 99) == []

    async def test_a_purge_affects_its_own_namespace_only(self, engine: Engine, open: Open) -> None:
        async with open(namespace="other") as other:
            await fill_shapes(other)

            assert await purged(engine, now=NOW + 99) == []
            assert len(await purged(other, now=NOW + 99)) == 18

    @pytest.mark.parametrize("kind", KINDS)
    async def test_a_record_lives_as_long_as_its_latest_expiry(self, engine: Engine, kind: str) -> None:
        """Whatever steps the clock takes between the writes."""
        for seed in range(SCHEDULES):
            await engine.reset()
            steps = random.Random(f"{kind} {seed}")
            latest = 0
            for _ in range(STEPS):
                now = NOW + steps.randrange(-30, 6) * DAY
                if latest <= now:  # it has expired, and starts again
                    latest = 0
                end = now + steps.choice((DAY, LIFETIME, LIFETIME, 14 * DAY))
                await write_kind(engine, kind, now, end)
                latest = max(latest, end)
            await purged(engine, now=latest - 1)
            assert (await is_alive(engine, kind, latest - 1), await is_alive(engine, kind, latest)) == (True, False), (
                seed
            )

    async def test_a_write_may_let_a_document_end_earlier(self, engine: Engine) -> None:
        await write(engine, b"1", expires_at=NEVER)

        await engine.documents.update(
            [key()], lambda _: {key(): b"2"}, now=NOW, expires_at=NOW + 5, may_end_earlier=True
        )

        assert (b"2", None) == (await read(engine, now=NOW + 4), await read(engine, now=NOW + 5))

    async def test_a_record_written_after_its_removal_has_a_new_expiry(self, engine: Engine) -> None:
        await write(engine, b"1", expires_at=NEVER)
        await engine.documents.drop([key()], now=NOW)
        await write(engine, b"2", expires_at=NOW + 5)
        await engine.ballots.cast(key(), CastRequest("U1", "a"), now=NOW, expires_at=NEVER)
        await engine.ballots.drop(key(), now=NOW)
        await engine.ballots.cast(key(), CastRequest("U1", "a"), now=NOW, expires_at=NOW + 5)

        assert await read(engine, now=NOW + 5) is None
        assert (await engine.ballots.tally(key(), now=NOW + 5)).counts == ()
