"""The contract of the catalog: what a namespace holds, by kind and by expiry."""

from __future__ import annotations

import asyncio

from emulator.core.keys import NEVER, Expired, Key
from emulator.storage.engine import Engine
from emulator.storage.shapes import CatalogSearch, DocumentOrPool
from engines.pool_shorthand import stocked
from engines.shorthand import END, EVERYWHERE, NOW, ODD, append, cast, keep, key, purged, write


async def things(engine: Engine, *kinds: str, now: int = NOW, limit: int = 999, **filters: object) -> list[Key]:
    search = CatalogSearch(kinds or ["kind"], **filters)  # type: ignore[arg-type]
    found = await engine.catalog.things(search, now=now, limit=limit)
    return [thing.key for thing in found]


async def upcoming(engine: Engine, *, now: int = NOW) -> list[Expired]:
    return await engine.catalog.upcoming(["kind"], now=now, limit=999)


SORTED = [
    Key(kind, owner, name, channel, user)
    for kind in ("a", "b")
    for owner in ("", "client", "else")
    for name in ("", "one")
    for channel in ("", "c")
    for user in ("", "U1")
]


class CatalogContract:
    async def test_records_are_found_page_by_page(self, engine: Engine) -> None:
        for each in SORTED:
            await write(engine, b"1", each)

        found: list[Key] = []
        while page := await things(engine, "a", "b", limit=7, after=found[-1] if found else None):
            assert len(page) <= 7
            found += page
        assert SORTED == found

    async def test_records_are_found_by_owner_channel_and_text(self, engine: Engine) -> None:
        for each in SORTED:
            await write(engine, b"1", each)

        assert [one for one in SORTED if one.owner == "else"] == await things(engine, "a", "b", owner="else")
        assert [one for one in SORTED if one.channel == "c"] == await things(engine, "a", "b", channel="c")
        assert [one for one in SORTED if one.name] == await things(engine, "a", "b", matching="ne")
        assert [one for one in SORTED if one.user] == await things(engine, "a", "b", matching="U1")
        assert [] == await things(engine, "a", "b", matching="client")

    async def test_a_record_has_its_expiry_and_size(self, engine: Engine) -> None:
        await write(engine, b"12345", key("document"))
        await stocked(engine, ["x", "y"], key("pool"), expires_at=END + 1)

        assert [
            DocumentOrPool(key("document"), END, 5),
            DocumentOrPool(key("pool"), END + 1, 0),
        ] == await engine.catalog.things(CatalogSearch(["kind"]), now=NOW, limit=9)

    async def test_records_with_unusual_keys_are_found(self, engine: Engine) -> None:
        keys = sorted({key(odd, channel=odd, user=odd) for odd in (*ODD, "a|b", "%00", "%7C", "|")})
        for each in keys:
            await write(engine, b"1", each)
            await cast(engine, "U1", "3", each)

        assert keys == await things(engine)
        for each in keys:
            assert each in await things(engine, matching=each.name)
            found = await engine.ballots.listing(EVERYWHERE, now=NOW, limit=999, matching=each.name)
            assert each in [one.key for one in found]

    async def test_permanent_records_are_found_and_no_expiry_comes(self, engine: Engine) -> None:
        await write(engine, b"1", key("a"), expires_at=NEVER)
        await keep(engine, {key("b"): b"1"}, replace=True)

        assert ([key("a"), key("b")], []) == (await things(engine), await upcoming(engine))
        assert {"kind": 2} == await engine.catalog.count(["kind"], now=NOW, most=9)

    async def test_expired_and_dropped_records_are_not_found(self, engine: Engine) -> None:
        await write(engine, b"1", key("expired"), expires_at=NOW)
        await write(engine, b"1", key("dropped"))
        await engine.documents.drop([key("dropped")], now=NOW)
        await stocked(engine, ["x"], key("pool"))
        await engine.pools.drop([key("pool")], now=NOW)

        assert [] == await things(engine) == await upcoming(engine)
        assert {"kind": 0} == await engine.catalog.count(["kind"], now=NOW, most=9)

    async def test_all_shapes_are_counted_by_kind(self, engine: Engine) -> None:
        for kind in ("a", "b"):
            await write(engine, b"1", key()._replace(kind=kind))
            await cast(engine, "U1", "3", key()._replace(kind=kind))
            await append(engine, b"1", key()._replace(kind=kind))
            await append(engine, b"1", key()._replace(kind=kind))
            await stocked(engine, ["x"], key()._replace(kind=kind))

        assert {"b": 4, "c": 0} == await engine.catalog.count(["b", "c"], now=NOW, most=9)
        assert {"b": 3} == await engine.catalog.count(["b"], now=NOW, most=3)
        assert {"b": 0} == await engine.catalog.count(["b"], now=END, most=3)

    async def test_the_owners_of_ballots_and_logs_are_found(self, engine: Engine) -> None:
        for owner in ("z", "a", "ä", "a|b"):
            for name in ("one", "two"):
                await cast(engine, "U1", "3", key(name, owner=owner))
        await append(engine, b"1", key(owner="log"))
        await append(engine, b"1", key(owner="expired"), expires_at=NOW)

        assert ["a", "a|b", "log", "z", "ä"] == await engine.catalog.owners("kind", now=NOW, limit=9)
        assert ["a|b", "log"] == await engine.catalog.owners("kind", now=NOW, limit=2, after="a")
        assert [] == await engine.catalog.owners("kind", now=END, limit=9)

    async def test_a_listing_is_limited_to_ids_that_contain_a_text(self, engine: Engine) -> None:
        for name in ("lunch", "lunch-2", "dinner"):
            await cast(engine, "U1", "3", key(name))
            await append(engine, b"1", key(name))
        await cast(engine, "U1", "3", key("dinner", channel="lunch"))

        ballots = await engine.ballots.listing(EVERYWHERE, now=NOW, limit=9, matching="unch")
        logs = await engine.logs.listing(EVERYWHERE, now=NOW, limit=1, matching="unch")
        assert ["lunch", "lunch-2", "dinner"] == [one.key.name for one in ballots]
        assert ["lunch"] == [one.key.name for one in logs]

    async def test_the_coming_expiries_are_soonest_first(self, engine: Engine) -> None:
        await write(engine, b"1", key("document"), expires_at=NOW + 3)
        await cast(engine, "U1", "a", key("ballot"), expires_at=NOW + 2)
        await append(engine, b"1", key("log"), expires_at=NOW + 4)
        await append(engine, b"1", key("log"), expires_at=NOW + 1)
        await stocked(engine, ["x"], key("pool"), expires_at=NOW + 5)

        assert [
            Expired(key("log"), NOW + 1),
            Expired(key("ballot"), NOW + 2),
            Expired(key("document"), NOW + 3),
            Expired(key("pool"), NOW + 5),
        ] == await upcoming(engine)

    async def test_no_expiry_depends_on_the_purge(self, engine: Engine) -> None:
        for end in (1, 2, 6):
            await append(engine, b"1", key("log"), expires_at=NOW + end)
        await write(engine, b"1", key("early"), expires_at=NOW + 1)
        await write(engine, b"1", key("late"), expires_at=NOW + 9)

        for _ in range(2):  # before and after the purge
            assert [Expired(key("log"), NOW + 6), Expired(key("late"), NOW + 9)] == await upcoming(engine, now=NOW + 2)
            assert {"kind": 2} == await engine.catalog.count(["kind"], now=NOW + 2, most=9)
            await purged(engine, now=NOW + 2)

    async def test_the_soonest_of_many_expiries_of_the_asked_kinds_are_returned(self, engine: Engine) -> None:
        async def add(number: int) -> None:
            await write(engine, b"1", key(f"{number:04}"), expires_at=NOW + 601 - number)
            await write(engine, b"1", key()._replace(kind="other", name=f"{number:04}"), expires_at=NOW + 1)
            await append(engine, b"1", key("log"), expires_at=NOW + 1 + number)

        await asyncio.gather(*map(add, range(600)))

        found = await engine.catalog.upcoming(["kind"], now=NOW, limit=400)

        assert (400, key("log"), key("0599")) == (len(found), *(one.key for one in found[:2]))
        assert [one.at for one in found] == [NOW + 1, *range(NOW + 2, NOW + 401)]
        assert [] == await engine.catalog.upcoming(["none"], now=NOW, limit=9)
