"""The id quota: polls, rankings, buffers and JSON stores per extension and channel (ruling W10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator.core.callers import Caller, Role
from emulator.core.clock import HOUR, Clock
from emulator.core.config.settings import Limits, Settings
from emulator.core.keys import Key
from emulator.features.id_quota import IdQuota
from emulator.storage.opening import open_engine
from engines.redis_server import RedisServer
from support.service import Client, LiveServer, live_server
from support.socket_client import linked_game

KINDS = {
    "vote": {"value": 1},
    "vote_config": {"id": "", "config": {"prompt": "?", "options": ["a"]}},
    "rank": {"key": "a"},
    "accumulate": {"a": 1},
    "json_store": {"a": 1},
}


@pytest.fixture
def limited() -> Iterator[LiveServer]:
    """A service with a quota of three ids."""
    with live_server(Settings(limits=Limits(ids=3))) as live:
        yield live


@pytest.fixture
def admin(limited: LiveServer) -> Client:
    return limited.client("admin", user="1", channel="777")


def create(client: Client, kind: str, name: str) -> int:
    body = KINDS[kind] | ({"id": name} if kind == "vote_config" else {})
    return client.post(kind, params={"id": name}, json=body).status_code


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_ids_over_the_quota_are_refused_and_existing_ids_still_work(admin: Client, kind: str):
    assert [200, 200, 200, 400] == [create(admin, kind, name) for name in "abcd"]
    assert [200, 200, 200, 400] == [create(admin, kind, name) for name in "abcd"]


def test_votes_and_definitions_share_the_quota_of_polls(admin: Client):
    assert [200, 200, 200, 400] == [
        create(admin, kind, name) for kind, name in zip(["vote", "vote_config"] * 2, "abcd", strict=True)
    ]


def test_each_channel_kind_and_extension_has_its_own_quota(limited: LiveServer, admin: Client):
    for name in "abc":
        create(admin, "vote", name)

    others = [
        create(limited.client("admin", user="1", channel="778"), "vote", "d"),
        create(limited.client("admin", user="1", channel="777", client_id="another"), "vote", "d"),
        create(admin, "vote", "global-d"),
        create(admin, "rank", "d"),
    ]

    assert [200] * 4 == others


@pytest.mark.parametrize("kind", ["vote", "rank"])
def test_a_deleted_id_frees_its_quota(admin: Client, kind: str):
    for name in "abc":
        create(admin, kind, name)

    admin.delete(kind, params={"id": "b"}).raise_for_status()

    assert [200, 400] == [create(admin, kind, name) for name in "de"]


def test_an_expired_id_frees_its_quota_and_one_in_use_stays_counted(limited: LiveServer, admin: Client):
    limited.freeze()
    for name in "abc":
        create(admin, "rank", name)
    limited.advance(20 * HOUR)
    create(admin, "rank", "a")

    expired = limited.advance(6 * HOUR)

    assert ["rank", "rank"] == [each["kind"] for each in expired]
    assert [200, 200, 400] == [create(admin, "rank", name) for name in "def"]


def test_a_reset_frees_the_quota(limited: LiveServer, admin: Client):
    for name in "abc":
        create(admin, "vote", name)

    limited.reset()

    assert [200, 200, 200, 400] == [create(admin, "vote", name) for name in "defg"]


def test_a_poll_created_over_the_websocket_counts_towards_the_quota(limited: LiveServer):
    with linked_game(limited) as game:
        config = {"prompt": "?", "options": ["a", "b"]}
        for name in "abc":
            game.data("create", "poll", {"poll_id": name, **config})
        error = game.error("create", "poll", {"poll_id": "d", **config})
        state = game.data("get", "state", {"state_id": "channel"})

    assert (400, "Bad Request") == (error["status"], error["title"])
    assert {"a", "b", "c"} == set(state["state"])


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2])
def test_writes_at_the_same_moment_never_exceed_the_quota(tmp_path: Path, nodes: int):
    with RedisServer(tmp_path) as redis, ExitStack() as stack:
        data = "sqlite://" if nodes == 1 else redis.url()
        settings = Settings(data=data, limits=Limits(ids=40))
        services = [stack.enter_context(live_server(settings)) for _ in range(nodes)]

        def write(number: int) -> tuple[str, int]:
            role = "admin" if number < 60 else f"viewer {number % 6}"
            client = services[number % nodes].client(role.split()[0], user=role[-1], channel="777")
            return role, create(client, "rank", f"{number}")

        with ThreadPoolExecutor(20) as pool:
            written = Counter(role for role, status in pool.map(write, range(180)) if status == 200)

        assert 40 == written.pop("admin")
        assert 40 == sum(written.values())
        assert max(written.values()) <= 10


async def test_an_id_does_not_count_whose_definition_another_caller_overtook():
    async def overtaken() -> bool:
        return False

    async def write() -> bool:
        return True

    async with open_engine("sqlite://", namespace="sandbox") as engine:
        clock = Clock()
        quota, now = IdQuota(engine.documents, clock, limit=1), clock.now()
        admin = Caller("app", Role.ADMIN, "777", None, "A-admin")

        assert not await quota.write(Key("poll", "app", "a", "777"), admin, HOUR, now, overtaken)
        assert await quota.write(Key("poll", "app", "b", "777"), admin, HOUR, now, write)
