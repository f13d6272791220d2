"""What every engine promises of housekeeping: a true report, and no other effect."""

from __future__ import annotations

from emulator.engines.base import NEVER, Expired, Terms
from emulator.engines.engine import Engine
from engines.shorthand import END, NOW, Open, append, cast, choice_of, counts, entries, items, key, latest, read, write

NAMES = ("early", "late", "never")
ENDS = {"early": NOW + 10, "late": NOW + 20, "never": NEVER}


async def fill(engine: Engine) -> None:
    """A document, a ballot, a defined ballot and a log of each name, in two places."""
    for name in NAMES:
        for channel in ("x", "y"):
            where = key(name, channel=channel)
            await write(engine, b"1", where, expires_at=ENDS[name])
            await engine.ballots.define(where._replace(user="d"), b"d", Terms(), now=NOW, expires_at=ENDS[name])
            for voter in ("U1", "U2"):
                await cast(engine, voter, "a", where, expires_at=ENDS[name])
            await append(engine, b"1", where, expires_at=ENDS[name])
            await append(engine, b"2", where, now=NOW + 1, expires_at=NOW + 15)


async def answers(engine: Engine, now: int) -> list[object]:
    """What the engine says to every question about all of it."""
    said: list[object] = []
    for name in NAMES:
        for where in (key(name, channel="x"), key(name, channel="y")):
            said.append(await read(engine, where, now=now))
            said.append(await engine.documents.users(where, after="", limit=9, now=now))
            said.append(await engine.ballots.definition(where._replace(user="d"), now=now))
        for channel in ("x", "y", None):
            where = key(name, channel=channel)
            said.append(await counts(engine, where, now=now))
            said.append(await choice_of(engine, "U1", where, now=now))
            said.append(await entries(engine, where, now=now))
            said.append(await items(engine, where, now=now))
            said.append(await latest(engine, where, now=now))
    return said


class PurgeContract:
    async def test_no_answer_changes_by_a_purge(self, engine: Engine) -> None:
        for purged in (NOW, NOW + 9, NOW + 10, NOW + 15, NOW + 20, NOW + 9999):
            await engine.reset()
            await fill(engine)
            before = [await answers(engine, now) for now in (purged, purged + 5, NOW + 20)]

            await engine.purge(now=purged)
            await engine.tidy()

            assert before == [await answers(engine, now) for now in (purged, purged + 5, NOW + 20)]

    async def test_casts_after_a_purge_are_as_without(self, engine: Engine) -> None:
        await fill(engine)
        await engine.purge(now=NOW + 10)
        await engine.tidy()

        early, late = [
            await cast(engine, "U1", "b", key(name, channel="x"), now=NOW + 10) for name in ("early", "late")
        ]

        assert (early.previous, early.tally.counts) == (None, (("b", 1),))
        assert (late.previous, late.tally.counts) == ("a", (("a", 1), ("b", 1)))

    async def test_the_report_says_what_fell_due_in_that_order(self, engine: Engine) -> None:
        await write(engine, b"1", key("document"), expires_at=NOW + 3)
        await cast(engine, "U1", "a", key("ballot"), expires_at=NOW + 9)
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

    async def test_a_log_is_reported_once_with_the_newest_end_among_those_removed(self, engine: Engine) -> None:
        for end in (3, 5, 4, 9):
            await append(engine, b"1", now=NOW + end, expires_at=NOW + 10 + end)

        assert [Expired(key(), NOW + 15)] == await engine.purge(now=NOW + 16)
        assert [Expired(key(), NOW + 19)] == await engine.purge(now=NOW + 19)

    async def test_a_long_log_is_one_expiry(self, engine: Engine) -> None:
        for number in range(1200):
            await append(engine, b"1", now=NOW + number, expires_at=NOW + 2000 + number)

        assert [Expired(key(), NOW + 3199)] == await engine.purge(now=NOW + 9999)
        assert await items(engine) == []

    async def test_what_was_dropped_is_not_reported(self, engine: Engine) -> None:
        await fill(engine)
        await engine.documents.drop([key(name, channel=channel) for name in NAMES for channel in "xy"], now=NOW)
        for name in NAMES:
            await engine.ballots.drop(key(name, channel=None), now=NOW)
            await engine.ballots.drop(key(name, channel=None, user="d"), now=NOW)

        logs = [key(name, channel=channel) for name in NAMES for channel in "xy"]
        assert sorted(logs) == sorted(one.key for one in await engine.purge(now=NOW + 99))

    async def test_what_was_forgotten_by_a_reset_is_not_reported(self, engine: Engine) -> None:
        await fill(engine)
        await engine.reset()

        assert await engine.purge(now=NOW + 99) == []

    async def test_an_expiry_is_reported_also_when_something_new_has_taken_the_place(self, engine: Engine) -> None:
        """So the report is the same whether a purge ran in between or not."""
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

    async def test_an_expiry_is_reported_also_when_it_was_dropped_after_its_end(self, engine: Engine) -> None:
        await write(engine, b"1", key("document"), expires_at=NOW + 1)
        await cast(engine, "U1", "a", key("ballot"), expires_at=NOW + 2)
        await engine.documents.drop([key("document")], now=NOW + 1)
        await engine.ballots.drop(key("ballot"), now=NOW + 2)

        assert [Expired(key("document"), NOW + 1), Expired(key("ballot"), NOW + 2)] == await engine.purge(now=NOW + 2)

    async def test_a_purge_touches_its_own_namespace_only(self, engine: Engine, open: Open) -> None:
        async with open(namespace="other") as other:
            await fill(other)

            assert await engine.purge(now=NOW + 99) == []
            assert len(await other.purge(now=NOW + 99)) == 18

    async def test_a_purge_of_nothing_reports_nothing(self, engine: Engine) -> None:
        assert await engine.purge(now=NOW) == []
