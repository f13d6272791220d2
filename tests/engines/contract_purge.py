"""The contract of housekeeping: it reports correctly and changes no result."""

from __future__ import annotations

from emulator.engines.base import NEVER, Expired, Terms
from emulator.engines.engine import Engine
from engines.shorthand import END, NOW, Open, append, cast, choice_of, counts, entries, items, key, latest, read, write

NAMES = ("early", "late", "never")
ENDS = {"early": NOW + 10, "late": NOW + 20, "never": NEVER}


async def fill(engine: Engine) -> None:
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


class PurgeContract:
    async def test_a_purge_does_not_change_any_result(self, engine: Engine) -> None:
        for purged in (NOW, NOW + 9, NOW + 10, NOW + 15, NOW + 20, NOW + 9999):
            await engine.reset()
            await fill(engine)
            before = [await read_all(engine, now) for now in (purged, purged + 5, NOW + 20)]

            await engine.purge(now=purged)
            await engine.tidy()

            assert before == [await read_all(engine, now) for now in (purged, purged + 5, NOW + 20)]

    async def test_a_purge_does_not_change_later_casts(self, engine: Engine) -> None:
        await fill(engine)
        await engine.purge(now=NOW + 10)
        await engine.tidy()

        early, late = [
            await cast(engine, "U1", "b", key(name, channel="x"), now=NOW + 10) for name in ("early", "late")
        ]

        assert (early.previous, early.tally.counts) == (None, (("b", 1),))
        assert (late.previous, late.tally.counts) == ("a", (("a", 1), ("b", 1)))

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
        ] == await engine.purge(now=NOW + 4)

    async def test_each_expiry_is_reported_once(self, engine: Engine) -> None:
        await fill(engine)

        first, again, rest = [await engine.purge(now=now) for now in (NOW + 15, NOW + 15, NOW + 20)]

        assert (len(first), again, len(rest)) == (12, [], 8)

    async def test_a_log_is_reported_once_with_the_newest_removed_expiry(self, engine: Engine) -> None:
        for end in (3, 5, 4, 9):
            await append(engine, b"1", now=NOW + end, expires_at=NOW + 10 + end)

        assert [Expired(key(), NOW + 15)] == await engine.purge(now=NOW + 16)
        assert [Expired(key(), NOW + 19)] == await engine.purge(now=NOW + 19)

    async def test_a_long_log_is_reported_once(self, engine: Engine) -> None:
        for number in range(1200):
            await append(engine, b"1", now=NOW + number, expires_at=NOW + 2000 + number)

        assert [Expired(key(), NOW + 3199)] == await engine.purge(now=NOW + 9999)
        assert await items(engine) == []

    async def test_dropped_things_are_not_reported(self, engine: Engine) -> None:
        await fill(engine)
        await engine.documents.drop([key(name, channel=channel) for name in NAMES for channel in "xy"], now=NOW)
        for name in NAMES:
            await engine.ballots.drop(key(name, channel=None), now=NOW)
            await engine.ballots.drop(key(name, channel=None, user="d"), now=NOW)

        logs = [key(name, channel=channel) for name in NAMES for channel in "xy"]
        assert sorted(logs) == sorted(one.key for one in await engine.purge(now=NOW + 99))

    async def test_things_before_a_reset_are_not_reported(self, engine: Engine) -> None:
        await fill(engine)
        await engine.reset()

        assert await engine.purge(now=NOW + 99) == []

    async def test_an_expiry_is_reported_after_a_replacement(self, engine: Engine) -> None:
        """So the report does not depend on a purge in between."""
        await write(engine, b"1", key("document"), expires_at=NOW + 1)
        await cast(engine, "U1", "a", key("ballot"), expires_at=NOW + 2)
        await engine.ballots.define(key("defined"), b"", Terms(), now=NOW, expires_at=NOW + 3)
        await write(engine, b"2", key("document"), now=NOW + 5, expires_at=END)
        await cast(engine, "U1", "a", key("ballot"), now=NOW + 5, expires_at=END)
        await engine.ballots.define(key("defined"), b"", Terms(), now=NOW + 5, expires_at=END)

        assert [
            Expired(key("document"), NOW + 1),
            Expired(key("ballot"), NOW + 2),
            Expired(key("defined"), NOW + 3),
        ] == await engine.purge(now=NOW + 5)
        assert await engine.purge(now=NOW + 5) == []

    async def test_an_expiry_is_reported_after_a_drop(self, engine: Engine) -> None:
        await write(engine, b"1", key("document"), expires_at=NOW + 1)
        await cast(engine, "U1", "a", key("ballot"), expires_at=NOW + 2)
        await engine.documents.drop([key("document")], now=NOW + 1)
        await engine.ballots.drop(key("ballot"), now=NOW + 2)

        assert [Expired(key("document"), NOW + 1), Expired(key("ballot"), NOW + 2)] == await engine.purge(now=NOW + 2)

    async def test_a_purge_affects_its_own_namespace_only(self, engine: Engine, open: Open) -> None:
        async with open(namespace="other") as other:
            await fill(other)

            assert await engine.purge(now=NOW + 99) == []
            assert len(await other.purge(now=NOW + 99)) == 18

    async def test_a_purge_of_nothing_reports_nothing(self, engine: Engine) -> None:
        assert await engine.purge(now=NOW) == []
