"""The records of the id quota, on every engine: their size, and what several nodes and earlier versions do to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from emulator.clock import DAY, HOUR, WEEK, Clock
from emulator.engines.engine import Engine
from emulator.engines.opening import open_engine
from emulator.engines.shapes import Documents, Edit, Key
from emulator.errors import BadRequest
from emulator.limits.id_quota import IdQuota, is_quota_record
from engines.contract_draws import Overtaken
from engines.redis_server import RedisServer

NOW = 2_000_000_000_000
Node = Callable[[Documents], IdQuota]


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    url = f"sqlite:///{tmp_path}/data.db"
    if request.param == "redis":
        url = request.getfixturevalue("redis_server").url()
    async with open_engine(url, namespace=tmp_path.name) as engine:
        yield engine


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.freeze(True)
    clock.set(NOW)
    return clock


@pytest.fixture
def node(clock: Clock) -> Node:
    """Makes the quota of another node, which has recorded nothing yet."""
    return partial(IdQuota, clock=clock, limit=300)


class Sizes:
    """Passes updates on to an engine, and notes the bytes of each."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self.bytes: list[int] = []

    async def update(
        self, keys: Sequence[Key], change: Edit, *, now: int, expires_at: int, may_end_earlier: bool = False
    ) -> dict[Key, bytes]:
        written = await self._documents.update(keys, change, now=now, expires_at=expires_at)
        self.bytes.append(sum(map(len, written.values())))
        return written

    def __getattr__(self, name: str) -> object:
        return getattr(self._documents, name)


def key(number: int) -> Key:
    return Key("poll", "my-extension", f"poll-{number:04}", "777")


async def claim(quota: IdQuota, clock: Clock, *numbers: int) -> list[bool]:
    """Claim these ids one after the other for a week, and return which were allowed."""
    allowed = []
    for number in numbers:
        try:
            await quota.claim(key(number), WEEK, now=clock.now())
        except BadRequest:
            allowed.append(False)
        else:
            allowed.append(True)
    return allowed


async def test_a_new_id_writes_as_many_bytes_however_many_ids_there_are(engine: Engine, node: Node, clock: Clock):
    documents = Sizes(engine.documents)
    quota = node(documents)

    await claim(quota, clock, *range(300))

    assert max(documents.bytes) - min(documents.bytes) <= len("300") - len("1")


async def test_ids_of_every_hour_of_a_week_fit_in_one_small_record(engine: Engine, node: Node, clock: Clock):
    documents = Sizes(engine.documents)
    quota = node(documents)

    for number in range(300):
        await claim(quota, clock, number)
        clock.advance(HOUR)

    assert max(documents.bytes) < (WEEK // HOUR + 3) * len('"2000000000000":1,') + 20


async def test_claims_at_the_same_moment_never_exceed_the_limit(engine: Engine, node: Node, clock: Clock):
    one, other = node(engine.documents), node(engine.documents)

    allowed = await asyncio.gather(*(claim((one, other)[n % 2], clock, n) for n in range(320)))

    assert 300 == sum(each for (each,) in allowed)


async def test_an_id_that_several_nodes_record_counts_once(engine: Engine, node: Node, clock: Clock):
    for _ in range(3):
        for _ in range(3):
            await claim(node(engine.documents), clock, *range(10))
        clock.advance(2 * HOUR)

    assert [True] * 290 + [False] == await claim(node(engine.documents), clock, *range(10, 301))


async def test_an_id_released_on_one_node_is_free_on_the_others(engine: Engine, node: Node, clock: Clock):
    one, other = node(engine.documents), node(engine.documents)
    await claim(one, clock, *range(300))
    clock.advance(3 * HOUR)
    await claim(other, clock, 5)

    await one.release(key(5))
    await one.release(key(5))

    assert [True, False] == await claim(other, clock, 300, 301)


@pytest.mark.parametrize(("operation", "is_counted"), [("update", False), ("drop_equal", True)])
async def test_a_claim_by_another_node_during_a_release_counts_if_it_is_later(
    engine: Engine, clock: Clock, operation: str, is_counted: bool
):
    other = IdQuota(engine.documents, clock, limit=1)

    async def claim_meanwhile() -> None:
        clock.advance(3 * HOUR)
        await claim(other, clock, 5)

    overtaken = cast(Documents, Overtaken(engine.documents, operation, claim_meanwhile))
    await claim(IdQuota(engine.documents, clock, limit=1), clock, 5)

    await IdQuota(overtaken, clock, limit=1).release(key(5))

    assert [not is_counted] == await claim(IdQuota(engine.documents, clock, limit=1), clock, 6)


async def test_ids_end_within_two_hours_of_their_lifetime(engine: Engine, node: Node, clock: Clock):
    quota = node(engine.documents)
    await claim(quota, clock, *range(300))

    clock.advance(WEEK)
    before = await claim(quota, clock, 300)
    clock.advance(2 * HOUR)

    assert [[False], [True]] == [before, await claim(quota, clock, 300)]


async def test_expired_ids_leave_no_record(engine: Engine, node: Node, clock: Clock):
    quota = node(engine.documents)
    await claim(quota, clock, *range(20))
    await quota.release(key(7))

    expired = await engine.purge(now=NOW + WEEK + DAY)

    assert 20 == len(expired)  # 19 ids and their counts
    assert all(is_quota_record(each.key) for each in expired)


async def test_the_records_of_earlier_versions_do_not_count(engine: Engine, node: Node, clock: Clock):
    earlier = Key("ids", "my-extension", "poll", "777")
    ids = b"{%b}" % b",".join(b'"poll-%04d":%d' % (number, NOW + DAY) for number in range(300))
    await engine.documents.update([earlier], lambda _: {earlier: ids}, now=NOW, expires_at=NOW + DAY)

    assert [True] * 300 + [False] == await claim(node(engine.documents), clock, *range(301))
    assert is_quota_record(earlier)


async def test_ids_count_as_long_after_a_clock_was_set_back_and_corrected(engine: Engine, node: Node, clock: Clock):
    await claim(node(engine.documents), clock, *range(300))
    clock.set(NOW - 8 * 24 * HOUR)
    await claim(node(engine.documents), clock, *range(3))

    clock.set(NOW)

    assert [False, True] == await claim(node(engine.documents), clock, 300, 0)
