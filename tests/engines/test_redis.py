"""The contract on Redis, several engines on one server, and the keys that remain."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from functools import partial
from importlib.metadata import version
from itertools import count
from typing import Any, TypeVar

import pytest
import redis
from hypothesis import given, settings

from emulator.config.settings import Settings
from emulator.engines import open_engine
from emulator.engines.base import NEVER, CastRequest, Key
from emulator.engines.engine import Engine
from emulator.engines.redis import cast_batch
from emulator.engines.upgrades import Upgrades
from emulator.errors import EngineError
from engines.contract import EngineContract
from engines.contract_dump import dumped, load
from engines.contract_entries import VOTERS
from engines.contract_entries import fill as cast_many
from engines.contract_property import SHARED
from engines.contract_purge import fill as fill_shapes
from engines.histories import HISTORIES, History, replay
from engines.pool_shorthand import add_members, assign, draw, fill, held, source, stocked
from engines.redis_server import RedisServer
from engines.shorthand import END, EVERYWHERE, NOW, Open, append, cast, counts, entries, items, key, read, write
from support.service import CLIENT_ID, live_server
from support.socket_client import SocketClient, linked_game, request_pin

T = TypeVar("T")
DATABASES = count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def url(server: RedisServer) -> str:
    """The URL of a database that no other test uses."""
    return server.url(next(DATABASES))


@pytest.fixture
def database(url: str) -> Iterator[redis.Redis]:
    """A direct connection to the same database."""
    with redis.Redis.from_url(url) as database:
        yield database


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    async with open_engine(url, namespace="main") as engine:
        yield engine


@pytest.fixture
async def second(url: str) -> AsyncIterator[Engine]:
    """Another engine on the same data."""
    async with open_engine(url, namespace="main") as engine:
        yield engine


def names(database: redis.Redis) -> set[bytes]:
    return set(database.scan_iter(count=1000))


class TestRedis(EngineContract):
    @pytest.fixture
    def open(self, url: str) -> Open:
        return partial(open_engine, url)


# Without a task, as the HTTP protocol runs the hot path


async def stepped(operation: Coroutine[Any, Any, T]) -> T:
    """Run an operation as callbacks of the futures that it waits for, and return its result."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def step(_: object = None) -> None:
        assert asyncio.current_task() is None
        try:
            waits_for = operation.send(None)
        except StopIteration as done:
            result.set_result(done.value)
        except BaseException as error:
            result.set_exception(error)
        else:
            waits_for._asyncio_future_blocking = False
            waits_for.add_done_callback(step)

    loop.call_soon(step)
    return await result


async def test_operations_of_the_hot_path_need_no_task(engine: Engine) -> None:
    one = key()

    def more(live: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
        return {one: live.get(one, b"") + b"x"}

    await asyncio.gather(*(stepped(cast(engine, f"U{number}", "a")) for number in range(9)))
    await asyncio.gather(*(stepped(engine.documents.update([one], more, now=NOW, expires_at=END)) for _ in range(9)))
    await stepped(engine.documents.keep({key("kept"): b"2"}, replace=True))
    await stepped(append(engine, b"3"))

    assert [("a", 9)] == await stepped(counts(engine))
    assert b"x" * 9 == await stepped(read(engine)) == await stepped(engine.documents.peek(one, now=NOW))
    with pytest.raises(ValueError, match="given"):
        await stepped(engine.documents.update([], more, now=NOW, expires_at=END))


# Several engines


async def test_two_engines_hand_out_each_item_once(engine: Engine, second: Engine) -> None:
    await stocked(engine, [str(number) for number in range(300)])

    drawn = await asyncio.gather(*(draw((engine, second)[n % 2], f"U{n}") for n in range(400)))

    assert {str(number) for number in range(300)} == {item for item in drawn if item}
    assert 100 == drawn.count(None)
    holdings = [await held((second, engine)[n % 2], f"U{n}") for n in range(400)]
    assert drawn == [holding and holding.items[0] for holding in holdings]


async def test_concurrent_casts_of_two_engines_are_counted_exactly(engine: Engine, second: Engine) -> None:
    done = await asyncio.gather(*(cast((engine, second)[n % 2], f"U{n}", "a") for n in range(400)))

    assert list(range(1, 401)) == sorted(each.tally.counts[0][1] for each in done)
    assert [("a", 400)] == await counts(engine) == await counts(second)


async def test_each_cast_of_a_batch_returns_the_counts_at_its_time(engine: Engine) -> None:
    """The batch has an expiry, a refusal and a cast without tally."""
    ballots = engine.ballots
    await cast(engine, "U0", "z", expires_at=NOW + 5)

    done = await asyncio.gather(
        cast(engine, "U1", "a", expires_at=NOW + 5),
        ballots.cast(key(), CastRequest("U2", "a"), now=NOW, expires_at=NOW + 5),
        cast(engine, "U3", "b", now=-1),
        cast(engine, "U3", "b", now=NOW + 5, expires_at=NOW + 9),
        cast(engine, "U4", "b", now=NOW + 9, expires_at=-1),
        cast(engine, "U0", "c", now=NOW + 8, expires_at=NOW + 20),
    )

    assert [each.tally.counts for each in done] == [
        (("z", 1), ("a", 1)),
        (),
        (("a", 2), ("z", 1)),
        (("b", 1),),
        (("b", 1),),
        (("c", 1),),
    ]
    assert [each.refused for each in done] == [None, None, "closed", None, None, None]


@pytest.mark.slow
@pytest.mark.parametrize("max_age", [cast_batch.MAX_AGE, 0])
async def test_tallies_stay_right_while_two_engines_cast_by_turns(
    engine: Engine, second: Engine, monkeypatch: pytest.MonkeyPatch, max_age: float
) -> None:
    """Each engine keeps the counts and asks for the changes of the other; sometimes there are too many to ask for."""
    monkeypatch.setattr(cast_batch, "MAX_AGE", max_age)
    chance, now = random.Random(1), NOW
    for _ in range(40):
        one = chance.choice([engine, second])
        for _ in range(chance.choice([1, 1, 2, 20])):
            votes = [
                (f"U{chance.randrange(50)}", chance.choice("abcdef"))
                for _ in range(chance.choice([1, 1, 1, 2, 2, 3, 3, 3, 4, 300]))
            ]
            done = await asyncio.gather(*(cast(one, *vote, now=now, expires_at=now + 500) for vote in votes))
            last = done[-1].tally.counts
        assert await counts(one, now=now) == list(last)
        if chance.random() < 0.1:
            await second.ballots.drop(key(), now=now)
        now += chance.choice([1, 1, 1, 500])


async def test_concurrent_updates_of_two_engines_all_count(engine: Engine, second: Engine) -> None:
    def more(live: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
        return {key(): b"%d" % (int(live.get(key(), b"0")) + 1)}

    updates = [(engine, second)[n % 2].documents.update([key()], more, now=NOW, expires_at=END) for n in range(200)]
    await asyncio.gather(*updates)

    assert b"200" == await read(engine)


async def test_an_update_across_several_owners_is_atomic(engine: Engine, second: Engine) -> None:
    both = [key(owner="one"), key(owner="two")]

    def move(live: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
        return {both[0]: b"%d" % (int(live[both[0]]) - 1), both[1]: b"%d" % (int(live[both[1]]) + 1)}

    await engine.documents.update(both, lambda _: dict.fromkeys(both, b"50"), now=NOW, expires_at=END)
    moves = [each.documents.update(both, move, now=NOW, expires_at=END) for each in (engine, second) for _ in range(20)]
    *_, seen = await asyncio.gather(*moves, engine.documents.read(both, now=NOW))

    assert 100 == sum(map(int, seen.values()))
    assert {both[0]: b"10", both[1]: b"90"} == await engine.documents.read(both, now=NOW)


async def test_entries_replaced_by_another_engine_during_a_reading_appear_once(engine: Engine, second: Engine) -> None:
    await cast_many(engine)
    seen = []

    async for page in engine.ballots.entries(key(), now=NOW):
        seen += [entry.voter for entry in page]
        await asyncio.gather(
            *(
                second.ballots.cast(key(), CastRequest(each, "b"), now=NOW + 9000, expires_at=END)
                for each in VOTERS[::3]
            )
        )
        assert set(VOTERS) == {entry.voter for entry in await entries(second)}  # a concurrent reading

    assert VOTERS == seen


async def test_a_reset_is_visible_to_another_engine_at_once(engine: Engine, second: Engine) -> None:
    await write(engine, b"1")
    await second.reset()

    assert await read(engine) is None
    await write(engine, b"2")
    assert await read(second) == b"2"


async def test_data_of_earlier_versions_is_listed(url: str, database: redis.Redis) -> None:
    keys = [key(f"{number:03}") for number in range(300)]
    async with open_engine(url, namespace="main") as engine:
        for each in keys:
            await cast(engine, "U1", "3", each)
            await append(engine, b"1", each)
    for name in names(database):
        if b":0:x" in name or name.endswith(b":format"):
            database.delete(name)

    async with open_engine(url, namespace="main") as engine:
        assert keys == [listed.key for listed in await engine.ballots.listing(key(), now=NOW, limit=999)]
        assert keys == [listed.key for listed in await engine.logs.listing(key(), now=NOW, limit=999)]


async def test_a_ballot_with_many_choices_is_counted_by_its_voters(engine: Engine) -> None:
    await asyncio.gather(*(cast(engine, f"U{n}", str(n)) for n in range(1100)))
    await cast(engine, "U0", "1")

    assert [1100] == [listed.casts for listed in await engine.ballots.listing(key(), now=NOW, limit=9)]


# Keys that remain


async def test_expired_and_dropped_things_leave_no_keys(engine: Engine, database: redis.Redis) -> None:
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

    remaining = {name.decode().partition("}")[2] for name in names(database)}
    logs = {f":0:{kind}:kind|client|never||{channel}" for kind in ("l", "lv", "le") for channel in "xy"}
    kept = {":0:ps:kind|client||ch", ":0:lp:kind|client|never|", ":0:xl:kind|client"}
    assert {":format", ":numbers", ":0:ends", *kept, *logs} == remaining


async def test_a_finished_or_abandoned_reading_leaves_no_keys(engine: Engine, database: redis.Redis) -> None:
    await cast_many(engine)
    before = names(database)
    reading = engine.ballots.entries(key(), now=NOW)
    await anext(reading)
    for voter in VOTERS[-10:]:
        await cast(engine, voter, "b")
    assert 2 == len(names(database) - before)

    await reading.aclose()  # type: ignore[attr-defined]
    await entries(engine)
    await engine.check()

    assert set() == names(database) - before


async def test_tidying_deletes_only_the_keys_before_a_reset(
    engine: Engine, database: redis.Redis, open_other: Open
) -> None:
    database.set("another program's", "value")
    async with open_other(namespace="main*") as other:  # has a special meaning in a pattern
        await cast_many(engine)
        await fill_shapes(other)
        await other.reset()
        await fill_shapes(other)
        await engine.reset()
        await other.tidy()
        kept = [name for name in names(database) if b"main*" in name]
        await engine.tidy()

        own = {b"{emulator|main}" + end for end in (b"", b":format", b":numbers")}
        assert {b"another program's", *own, *kept} == names(database)
        assert [] == [name for name in kept if b"main*}:0:" in name]
        assert b"1" == await read(other, key("early", channel="x"))


async def test_a_dropped_namespace_leaves_three_small_keys(
    engine: Engine, database: redis.Redis, open_other: Open
) -> None:
    before = names(database)
    async with open_other(namespace="other") as other:
        await cast_many(other)
        await fill_shapes(other)
        await other.drop()

    assert {b"{emulator|other}" + end for end in (b"", b":format", b":numbers")} == names(database) - before


@pytest.fixture
def open_other(url: str) -> Open:
    return partial(open_engine, url)


# Data of earlier versions


async def test_what_an_earlier_version_handed_out_stays_spent(url: str, database: redis.Redis) -> None:
    """Earlier versions kept the items of each pool in a set of its own."""
    items, own = [f"{number}" for number in range(3_000)], "{emulator|main}"
    async with open_engine(url, namespace="main") as engine:
        for name in ("live", "dropped"):
            await stocked(engine, [name, *items] if name == "live" else ["old"], key(name))
            await draw(engine, "U1", key(name))
        await engine.pools.drop([key("dropped")], now=NOW)
        ids = [database.hkeys(f"{own}:0:pg:kind|client|{name}|ch|")[0].decode() for name in ("live", "dropped")]
        database.delete(f"{own}:0:ps:kind|client||ch", f"{own}:format")
        database.sadd(f"{own}:0:pi:{ids[0]}", *items)
        database.sadd(f"{own}:0:pi:{ids[1]}", "old")

    async with open_engine(url, namespace="main") as engine, open_engine(url, namespace="main") as other:
        await fill(engine, ["old", *items[::-1], "new"])
        await assign(engine, {key("later"): source()})

        assert ["new", None] == [await draw(each, "U2", key("later"), most=9) for each in (engine, other)]
        assert await draw(other, "U2", key("live")) is None


@pytest.mark.parametrize("marker", [None, b"2", b"1 0.1.0"])
async def test_an_older_format_is_refused_unless_it_may_be_raised(
    url: str, database: redis.Redis, marker: bytes | None
) -> None:
    name = "{emulator|main}:format"
    async with open_engine(url, namespace="main") as engine:
        await write(engine, b"1")
    current = database.get(name)
    database.delete(name) if marker is None else database.set(name, marker)

    with pytest.raises(EngineError, match=r"^Redis: the data has format \d, this version needs format 3, and --no-upg"):
        async with open_engine(url, namespace="main", upgrades=Upgrades(allowed=False)):
            pass

    assert database.get(name) == marker
    async with open_engine(url, namespace="main") as engine:
        assert await read(engine) == b"1"
    assert database.get(name) == current == f"3 {version('extcli')}".encode()


async def test_a_new_namespace_is_created_without_an_upgrade(url: str) -> None:
    for _ in range(2):
        async with open_engine(url, namespace="main", upgrades=Upgrades(allowed=False)) as engine:
            await engine.check()


@pytest.mark.parametrize(("marker", "needed"), [(b"4 1.2.0", "1.2.0 or later"), (b"4", "of the version that wrote it")])
async def test_a_newer_format_is_refused_with_the_version_that_it_needs(
    url: str, database: redis.Redis, marker: bytes, needed: str
) -> None:
    database.set("{emulator|main}:format", marker)

    with pytest.raises(EngineError, match=rf"newer version \(format 4; this one knows up to 3\); use extcli {needed}$"):
        async with open_engine(url, namespace="main"):
            pass

    assert database.get("{emulator|main}:format") == marker


async def test_an_assigned_list_begins_behind_its_spent_items(engine: Engine, database: redis.Redis) -> None:
    await stocked(engine, "abcde", key("p"))
    for user in "1234":
        await draw(engine, user, key("p"))
    await fill(engine, "dcbaxe")
    await assign(engine, {key("q"): source()})

    assert [b"x", b"e"] == database.lrange("{emulator|main}:0:sl:lists|client|list|ch|", 0, -1)


# Times and sizes


async def test_things_that_never_expire_are_alive_at_any_time(engine: Engine) -> None:
    await append(engine, b"1", expires_at=NEVER)
    await cast(engine, "U1", "a", expires_at=NEVER)

    assert [] == await engine.purge(now=NEVER - 1)
    assert [b"1"] == [item.value for item in await items(engine, EVERYWHERE, now=NEVER - 1)]
    assert [("a", 1)] == await counts(engine, EVERYWHERE, now=NEVER - 1)


async def test_a_call_may_have_more_arguments_than_the_lua_stack_holds(engine: Engine) -> None:
    many = [str(number) for number in range(20_000)]
    await stocked(engine, many)
    await add_members(engine, many, key("roster"))

    assert ["0", "1"] == [await draw(engine, user) for user in "ab"]
    assert {"19999": {"roster"}} == await engine.rosters.listing(key(""), ["19999"], now=NOW)


# Services


def test_two_services_on_the_same_data_act_as_one(url: str) -> None:
    settings = Settings(data=url)
    with live_server(settings) as one, live_server(settings) as two:
        for number, live in enumerate((one, two, two)):
            voter = live.client("viewer", user=f"{number}", channel="777")
            voter.post("vote", json={"value": 3}).raise_for_status()
        assert 3 == one.client("viewer", user="9", channel="777").get("vote").json()["stats"]["specific"][3]

        with SocketClient(two) as game:
            game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(one)})
            game.data("subscribe", "state", {"topic_id": "channel"})
            with linked_game(one) as other:
                other.data("set", "state", {"state_id": "channel", "state": {"a": 1}})
            assert {"topic_id": "channel", "state": {"a": 1}} == game.update()["data"]

        backend = one.client("backend")
        backend.put("codes", json={"codes": [["A1"]], "names": ["A"]}).raise_for_status()
        body = {"prizes": [0], "prize_limits": [9] * 10, "users": ["1"]}
        backend.post("codes/mark_from_list", json=body).raise_for_status()
        viewer = two.client("viewer", user="1", channel="777")
        assert "A1" == viewer.post("codes/redeem", json={"prize": 0}).raise_for_status().json()["code"]


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=SHARED)
@given(HISTORIES)
async def test_the_same_history_has_the_same_dump_on_redis_and_on_sqlite(engine: Engine, history: History):
    await engine.reset()
    now = await replay(engine, history)
    records = await dumped(engine, now=now)

    async with open_engine("sqlite://", namespace="main") as other:
        await replay(other, history)
        assert await dumped(other, now=now) == records
        await load(other, records)
        assert await dumped(other, now=now) == records
        await load(engine, await dumped(other, now=now))

    assert await dumped(engine, now=now) == records


def test_a_fork_on_redis_is_refused_with_exit_code_2_and_the_reason(url: str):
    with live_server(Settings(data=url)) as live:
        command = [sys.executable, "-m", "extcli", "ns", "fork", "default", "blue", "--url", live.url]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert 2 == ended.returncode
    assert "a copy needs SQLite" in ended.stderr
