"""The contract on Redis, and several engines and services on one server."""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

import pytest
import redis
from hypothesis import given, settings

from emulator.core.clock import system_now
from emulator.core.keys import NEVER, Key
from emulator.core.settings import Settings
from emulator.process.opening import open_app
from emulator.storage.engine import Engine
from emulator.storage.opening import open_engine, open_medium
from emulator.storage.pools import RosterInfo
from emulator.storage.shapes import CastRequest
from engines.contract import EngineContract
from engines.contract_dump import dumped, load
from engines.histories import HISTORIES, SHARED, History, replay
from engines.pool_shorthand import add_members, draw, held, stocked
from engines.shorthand import (
    END,
    EVERYWHERE,
    NOW,
    Open,
    append,
    cast,
    counts,
    items,
    keep,
    key,
    purged,
    read,
    write,
)
from support.examples import examples
from support.service import CLIENT_ID, live_server
from support.socket_client import SocketClient, linked_game, request_pin

T = TypeVar("T")


@pytest.fixture
async def engine(redis_url: str) -> AsyncIterator[Engine]:
    async with open_engine(redis_url, namespace="main") as engine:
        yield engine


@pytest.fixture
async def second(redis_url: str) -> AsyncIterator[Engine]:
    """Another engine on the same data."""
    async with open_engine(redis_url, namespace="main") as second:
        yield second


class TestRedis(EngineContract):
    @pytest.fixture
    def open(self, redis_url: str) -> Open:
        return partial(open_engine, redis_url)


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
    await stepped(keep(engine, {key("kept"): b"2"}, replace=True))
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
async def test_tallies_stay_right_while_two_engines_cast_by_turns(engine: Engine, second: Engine) -> None:
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


async def test_an_update_across_several_owners_is_atomic(engine: Engine, second: Engine) -> None:
    both = [key(owner="one"), key(owner="two")]

    def move(live: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
        return {both[0]: b"%d" % (int(live[both[0]]) - 1), both[1]: b"%d" % (int(live[both[1]]) + 1)}

    await engine.documents.update(both, lambda _: dict.fromkeys(both, b"50"), now=NOW, expires_at=END)
    moves = [each.documents.update(both, move, now=NOW, expires_at=END) for each in (engine, second) for _ in range(20)]
    *_, seen = await asyncio.gather(*moves, engine.documents.read(both, now=NOW))

    assert 100 == sum(map(int, seen.values()))
    assert {both[0]: b"10", both[1]: b"90"} == await engine.documents.read(both, now=NOW)


async def test_a_reset_is_visible_to_another_engine_at_once(engine: Engine, second: Engine) -> None:
    await write(engine, b"1")
    await second.reset()

    assert await read(engine) is None
    await write(engine, b"2")
    assert await read(second) == b"2"


# Times and sizes


async def test_records_that_never_expire_are_alive_at_any_time(engine: Engine) -> None:
    await append(engine, b"1", expires_at=NEVER)
    await cast(engine, "U1", "a", expires_at=NEVER)

    assert [] == await purged(engine, now=NEVER - 1)
    assert [b"1"] == [item.value for item in await items(engine, EVERYWHERE, now=NEVER - 1)]
    assert [("a", 1)] == await counts(engine, EVERYWHERE, now=NEVER - 1)


async def test_a_call_may_have_more_arguments_than_the_lua_stack_holds(engine: Engine) -> None:
    many = [str(number) for number in range(20_000)]
    await stocked(engine, many)
    await add_members(engine, many, key("roster"))

    assert ["0", "1"] == [await draw(engine, user) for user in "ab"]
    assert [RosterInfo("roster", b"", many)] == await engine.rosters.listing(key(""), many, now=NOW)


# Services


def test_two_services_on_the_same_data_act_as_one(redis_url: str) -> None:
    settings = Settings(data=redis_url)
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
@settings(max_examples=examples(20), deadline=None, suppress_health_check=SHARED)
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


def test_a_fork_on_redis_is_refused_with_exit_code_2_and_the_reason(redis_url: str):
    with live_server(Settings(data=redis_url)) as live:
        command = [sys.executable, "-m", "extcli", "ns", "fork", "default", "blue", "--url", live.url]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert 2 == ended.returncode
    assert "a copy needs SQLite" in ended.stderr


@pytest.mark.parametrize(("apart", "words"), [(5_000, "ahead of"), (-5_000, "behind")])
async def test_a_node_whose_clock_differs_from_redis_logs_a_warning(redis_url: str, caplog, apart: int, words: str):
    async with open_app(Settings(data=redis_url)) as (_, service):
        await service.control.compare_clocks()
        assert "the clock of this machine is" not in caplog.text

        await service.control.compare_clocks(lambda: system_now() + apart)

    [line] = [each for each in caplog.messages if each.startswith("the clock of this machine is")]
    assert re.match(rf"the clock of this machine is [45]\.\d s {words} the clock of Redis at ", line)


async def test_the_namespaces_with_data_are_listed(redis_url: str) -> None:
    medium = open_medium(redis_url)
    async with medium, medium.engine("b{|%}") as one, medium.engine("a") as two, medium.engine("empty"):
        await write(one, b"1")
        await write(two, b"1")
        assert ["a", "b{|%}"] == await medium.namespaces()

        await two.drop()
        assert ["b{|%}"] == await medium.namespaces()


async def test_tidying_removes_the_members_of_removed_rosters(redis_database: redis.Redis, engine: Engine) -> None:
    names = [f"{number}" for number in range(2_000)]
    for roster in ("gone", "kept", "expired"):
        await add_members(
            engine, names if roster != "kept" else names[:9], key(roster), expires_at=END + (roster == "kept")
        )
    await engine.rosters.drop([key("gone")], now=NOW)
    await purged(engine, now=END)
    await engine.tidy()

    (members,) = [name for name in redis_database.scan_iter(count=1000) if b":qu:" in name]
    assert 9 == redis_database.hlen(members)
    assert {17} == {len(ids) for ids in redis_database.hvals(members)}
    await engine.rosters.drop([key("kept")], now=END)
    assert not [name for name in redis_database.scan_iter(count=1000) if b":q" in name]
