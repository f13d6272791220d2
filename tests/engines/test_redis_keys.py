"""The keys in Redis: their format, and those that stay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from importlib.metadata import version

import pytest
import redis

from emulator.core.errors import EngineError
from emulator.storage.engine import Engine
from emulator.storage.opening import open_engine
from engines.contract_entries import fill as cast_many
from engines.contract_purge import fill_shapes
from engines.pool_shorthand import add_members, draw, stocked
from engines.shorthand import END, NOW, Open, key, purged, read, write


async def test_the_format_of_new_data_is_noted(redis_url: str, redis_database: redis.Redis) -> None:
    async with open_engine(redis_url, namespace="main") as engine:
        await write(engine, b"1")
        noted = redis_database.get("{emulator|main}:format")
    async with open_engine(redis_url, namespace="main") as engine:
        assert await read(engine) == b"1"

    assert redis_database.get("{emulator|main}:format") == noted == f"1 {version('extcli')}".encode()


@pytest.mark.parametrize(("marker", "shown"), [(b"99 1.2.0", "format 99, .*(1.2.0)"), (b"one", "format one, ")])
async def test_data_of_another_format_is_refused_and_stays_unchanged(
    redis_url: str, redis_database: redis.Redis, marker: bytes, shown: str
) -> None:
    redis_database.set("{emulator|main}:format", marker)

    with pytest.raises(EngineError, match=shown):
        async with open_engine(redis_url, namespace="main"):
            pass

    assert [(b"{emulator|main}:format", marker)] == [(each, redis_database.get(each)) for each in names(redis_database)]


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
    await purged(engine, now=END)
    never = key("never", channel=None)
    await engine.ballots.drop(never, now=END)
    await engine.ballots.drop(never._replace(user="d"), now=END)
    await engine.documents.drop([key("never", channel=channel) for channel in "xy"], now=END)

    remaining = {name.decode().partition("}")[2] for name in names(redis_database)}
    logs = {f":0:{kind}:kind|client|never||{channel}" for kind in ("l", "lv", "le") for channel in "xy"}
    kept = {":0:pf", ":0:ps:kind|client||ch", ":0:lp:kind|client|never|", ":0:xl:kind|client"}
    assert {":format", ":numbers", ":0:ends", *kept, *logs} == remaining


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
