"""Data that other versions wrote to Redis: read, raised to the current format, or refused."""

from __future__ import annotations

from importlib.metadata import version

import pytest
import redis

from emulator.engines import open_engine
from emulator.engines.engine import Upgrades
from emulator.errors import EngineError
from engines.pool_shorthand import assign, draw, fill, source, stocked
from engines.shorthand import NOW, append, cast, key, read, write


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


async def test_what_an_earlier_version_handed_out_stays_spent(redis_url: str, redis_database: redis.Redis) -> None:
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

    with pytest.raises(EngineError, match=rf"newer version \(format 4; this one knows up to 3\); use extcli {needed}$"):
        async with open_engine(redis_url, namespace="main"):
            pass

    assert redis_database.get("{emulator|main}:format") == marker
