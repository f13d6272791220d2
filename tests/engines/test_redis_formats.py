"""Data that other versions wrote to Redis: read, raised to the current format, or refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from importlib.metadata import version

import pytest
import redis

from emulator.engines.engine import Engine, Upgrades
from emulator.engines.opening import open_engine
from emulator.engines.pools import Holding
from emulator.errors import EngineError
from engines.contract_entries import VOTERS
from engines.contract_entries import fill as cast_many
from engines.contract_purge import fill_shapes
from engines.pool_shorthand import add_members, assign, draw, fill, held, source, stocked
from engines.shorthand import END, NOW, Open, append, cast, entries, key, read, write


async def test_data_of_earlier_versions_is_listed(redis_url: str, redis_database: redis.Redis) -> None:
    keys = [key(f"{number:03}") for number in range(300)]
    async with open_engine(redis_url, namespace="main") as engine:
        for each in keys:
            await cast(engine, "U1", "3", each)
            await append(engine, b"1", each)
    for name in set(redis_database.scan_iter(count=1000)):
        if b":0:x" in name or name.endswith(b":format"):
            redis_database.delete(name)

    async with open_engine(redis_url, namespace="main") as engine:
        assert keys == [listed.key for listed in await engine.ballots.listing(key(), now=NOW, limit=999)]
        assert keys == [listed.key for listed in await engine.logs.listing(key(), now=NOW, limit=999)]


async def test_items_that_an_earlier_version_handed_out_stay_spent(redis_url: str, redis_database: redis.Redis) -> None:
    """Earlier versions kept the items of each pool in a set of its own."""
    items, own = [f"{number}" for number in range(3_000)], "{emulator|main}"
    async with open_engine(redis_url, namespace="main") as engine:
        for name in ("live", "dropped"):
            await stocked(engine, [name, *items] if name == "live" else ["old"], key(name))
            await draw(engine, "U1", key(name))
        await engine.pools.drop([key("dropped")], now=NOW)
        ids = [redis_database.hkeys(f"{own}:0:pg:kind|client|{name}|ch|")[0].decode() for name in ("live", "dropped")]
        redis_database.delete(f"{own}:0:ps:kind|client||ch", f"{own}:format")
        redis_database.sadd(f"{own}:0:pi:{ids[0]}", *items)
        redis_database.sadd(f"{own}:0:pi:{ids[1]}", "old")

    async with open_engine(redis_url, namespace="main") as engine, open_engine(redis_url, namespace="main") as other:
        await fill(engine, ["old", *items[::-1], "new"])
        await assign(engine, {key("later"): source()})

        assert ["new", None] == [await draw(each, "U2", key("later"), most=9) for each in (engine, other)]
        assert await draw(other, "U2", key("live")) is None


@pytest.mark.parametrize("marker", [None, b"2", b"1 0.1.0"])
async def test_an_older_format_is_refused_unless_it_may_be_raised(
    redis_url: str, redis_database: redis.Redis, marker: bytes | None
) -> None:
    name = "{emulator|main}:format"
    async with open_engine(redis_url, namespace="main") as engine:
        await write(engine, b"1")
    current = redis_database.get(name)
    redis_database.delete(name) if marker is None else redis_database.set(name, marker)

    with pytest.raises(EngineError, match=r"^Redis: the data has format \d, this version needs format 3, and --no-upg"):
        async with open_engine(redis_url, namespace="main", upgrades=Upgrades(allowed=False)):
            pass

    assert redis_database.get(name) == marker
    async with open_engine(redis_url, namespace="main") as engine:
        assert await read(engine) == b"1"
    assert redis_database.get(name) == current == f"3 {version('extcli')}".encode()


async def test_a_new_namespace_is_created_without_an_upgrade(redis_url: str) -> None:
    for _ in range(2):
        async with open_engine(redis_url, namespace="main", upgrades=Upgrades(allowed=False)) as engine:
            await engine.check()


@pytest.mark.parametrize(("marker", "needed"), [(b"4 1.2.0", "1.2.0 or later"), (b"4", "of the version that wrote it")])
async def test_a_newer_format_is_refused_with_the_version_that_it_needs(
    redis_url: str, redis_database: redis.Redis, marker: bytes, needed: str
) -> None:
    redis_database.set("{emulator|main}:format", marker)

    with pytest.raises(
        EngineError, match=rf"newer version \(format 4; this version reads formats up to 3\); use extcli {needed}$"
    ):
        async with open_engine(redis_url, namespace="main"):
            pass

    assert redis_database.get("{emulator|main}:format") == marker


@pytest.fixture
async def engine(redis_url: str) -> AsyncIterator[Engine]:
    async with open_engine(redis_url, namespace="main") as engine:
        yield engine


@pytest.fixture
def open_other(redis_url: str) -> Open:
    return partial(open_engine, redis_url)


def names(database: redis.Redis) -> set[bytes]:
    return set(database.scan_iter(count=1000))


async def test_expired_and_dropped_records_leave_no_keys(engine: Engine, redis_database: redis.Redis) -> None:
    await fill_shapes(engine)
    await stocked(engine, "abc", expires_at=END)
    await draw(engine)
    await engine.pools.drop([key()], now=NOW)
    await stocked(engine, "xyz", expires_at=END)
    await draw(engine)
    await add_members(engine, ["x"])
    await engine.purge(now=END)
    never = key("never", channel=None)
    await engine.ballots.drop(never, now=END)
    await engine.ballots.drop(never._replace(user="d"), now=END)
    await engine.documents.drop([key("never", channel=channel) for channel in "xy"], now=END)

    remaining = {name.decode().partition("}")[2] for name in names(redis_database)}
    logs = {f":0:{kind}:kind|client|never||{channel}" for kind in ("l", "lv", "le") for channel in "xy"}
    kept = {":0:ps:kind|client||ch", ":0:lp:kind|client|never|", ":0:xl:kind|client"}
    assert {":format", ":numbers", ":0:ends", *kept, *logs} == remaining


async def test_a_finished_or_abandoned_reading_leaves_no_keys(engine: Engine, redis_database: redis.Redis) -> None:
    await cast_many(engine)
    before = names(redis_database)
    reading = engine.ballots.entries(key(), now=NOW)
    await anext(reading)
    for voter in VOTERS[-10:]:
        await cast(engine, voter, "b")
    assert 2 == len(names(redis_database) - before)

    await reading.aclose()  # type: ignore[attr-defined]
    await entries(engine)
    await engine.check()

    assert set() == names(redis_database) - before


async def test_tidying_deletes_only_the_keys_before_a_reset(
    engine: Engine, redis_database: redis.Redis, open_other: Open
) -> None:
    redis_database.set("another program's", "value")
    async with open_other(namespace="main*") as other:  # has a special meaning in a pattern
        await cast_many(engine)
        await fill_shapes(other)
        await other.reset()
        await fill_shapes(other)
        await engine.reset()
        await other.tidy()
        kept = [name for name in names(redis_database) if b"main*" in name]
        await engine.tidy()

        own = {b"{emulator|main}" + end for end in (b"", b":format", b":numbers")}
        assert {b"another program's", *own, *kept} == names(redis_database)
        assert [] == [name for name in kept if b"main*}:0:" in name]
        assert b"1" == await read(other, key("early", channel="x"))


async def test_a_dropped_namespace_leaves_three_small_keys(
    engine: Engine, redis_database: redis.Redis, open_other: Open
) -> None:
    before = names(redis_database)
    async with open_other(namespace="other") as other:
        await cast_many(other)
        await fill_shapes(other)
        await other.drop()

    assert {b"{emulator|other}" + end for end in (b"", b":format", b":numbers")} == names(redis_database) - before


async def test_an_assigned_list_begins_behind_its_spent_items(engine: Engine, redis_database: redis.Redis) -> None:
    await stocked(engine, "abcde", key("p"))
    for user in "1234":
        await draw(engine, user, key("p"))
    await fill(engine, "dcbaxe")
    await assign(engine, {key("q"): source()})

    assert [b"x", b"e"] == redis_database.lrange("{emulator|main}:0:sl:lists|client|list|ch|", 0, -1)


@pytest.mark.parametrize("count", ["9223372036854775807", "1e300", "inf"])
async def test_a_forged_count_of_items_never_runs_a_script_without_end(
    engine: Engine, redis_database: redis.Redis, count: str
) -> None:
    await stocked(engine, "abc")
    await draw(engine)
    [items] = [name for name in names(redis_database) if b":po:" in name]
    redis_database.hset(items, "cU1", count)

    assert Holding(("a",), 1) == await held(engine)
    assert await draw(engine) is None
    assert "b" == await draw(engine, "U2")
