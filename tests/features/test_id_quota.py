"""The id quota: polls, rankings, buffers and JSON stores per extension and channel."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.clock import DAY, HOUR
from emulator.config.settings import Limits, Settings
from emulator.engines.shapes import CastRequest, Key
from emulator.limits.id_quota import IdQuota
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


def test_the_error_names_the_number_of_ids_and_the_channel(admin: Client):
    for name in "abc":
        create(admin, "vote", name)

    refused = admin.post("vote", params={"id": "d"}, json={"value": 1}).json()

    assert ("Too many ids", "id: 3 of this kind are in use in channel 777; the limit is 3") == (
        refused["reason"],
        refused["info"],
    )


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


def test_an_expired_id_frees_its_quota(limited: LiveServer, admin: Client):
    limited.freeze()
    for name in "abc":
        create(admin, "rank", name)
    limited.advance(20 * HOUR)
    create(admin, "rank", "a")

    limited.advance(6 * HOUR)

    assert [200, 200, 400] == [create(admin, "rank", name) for name in "def"]


def test_an_id_in_constant_use_stays_counted(limited: LiveServer, admin: Client):
    limited.freeze()
    for _ in range(3):
        for name in "abc":
            create(admin, "rank", name)
        limited.advance(DAY // 2)

    assert 400 == create(admin, "rank", "d")


def test_an_extension_level_delete_frees_the_quota_of_every_channel(limited: LiveServer, admin: Client):
    for kind in ("vote", "rank"):
        for name in "abc":
            create(admin, kind, name)
        limited.client("backend").delete(kind, params={"id": "a"}).raise_for_status()

    assert [(200, 400)] * 2 == [(create(admin, kind, "d"), create(admin, kind, "e")) for kind in ("vote", "rank")]


def test_a_reset_frees_the_quota(limited: LiveServer, admin: Client):
    for name in "abc":
        create(admin, "vote", name)

    limited.reset()

    assert [200, 200, 200, 400] == [create(admin, "vote", name) for name in "defg"]


@pytest.mark.slow
def test_after_a_reset_on_another_node_known_ids_count_again(tmp_path: Path):
    settings = Settings(data=f"sqlite:///{tmp_path}/data.db", has_peers=True, limits=Limits(ids=3))
    with live_server(settings) as one, live_server(settings) as two:
        admins = [node.client("admin", user="1", channel="777") for node in (one, two)]
        notified = threading.Event()
        two.service.engine.relay.listen(lambda key, _: notified.set() if key.kind == "reset" else None)
        create(admins[1], "vote", "a")
        one.reset()
        assert notified.wait(timeout=5)

        create(admins[1], "vote", "a")

        assert [200, 200, 400] == [create(admins[0], "vote", name) for name in "bcd"]


def test_a_poll_created_over_the_websocket_counts_towards_the_quota(limited: LiveServer):
    with linked_game(limited) as game:
        config = {"prompt": "?", "options": ["a", "b"]}
        for name in "abc":
            game.data("create", "poll", {"poll_id": name, **config})
        error = game.error("create", "poll", {"poll_id": "d", **config})
        state = game.data("get", "state", {"state_id": "channel"})

    assert (400, "Bad Request") == (error["status"], error["title"])
    assert {"a", "b", "c"} == set(state["state"])


def test_the_records_of_the_quota_are_not_listed_as_expired(limited: LiveServer, admin: Client):
    create(admin, "rank", "a")

    expired = limited.advance(3 * DAY)

    assert ["rank"] == [each["kind"] for each in expired]


def test_ids_of_more_than_an_hour_ago_leave_the_cache(limited: LiveServer):
    keys = [Key("rank", "my-extension", f"r{number}", "777") for number in range(1_000)]
    quota = IdQuota(limited.service.engine.documents, limited.service.clock, len(keys))

    async def claim() -> None:
        now = limited.service.clock.now()
        await asyncio.gather(*(quota.claim(key, DAY, now=now) for key in keys[:-1]))
        await quota.claim(keys[-1], DAY, now=now + 2 * HOUR)

    limited.run(claim())

    assert keys[-1:] == list(quota._recorded)


@pytest.mark.slow
def test_the_records_of_the_quota_take_no_place_among_the_expiries_that_are_kept(limited: LiveServer):
    many = [Key("rank", "my-extension", f"r{number}", "777") for number in range(6_000)]
    quota = IdQuota(limited.service.engine.documents, limited.service.clock, len(many))

    async def fill() -> None:
        now = limited.service.clock.now()
        for key in many:
            await asyncio.gather(
                quota.claim(key, HOUR, now=now),
                limited.service.engine.ballots.cast(key, CastRequest("U1", "a"), now=now, expires_at=now + HOUR),
            )
        limited.service.clock.advance(4 * HOUR)
        await limited.service.control.sweep()

    limited.run(fill())

    assert len(many) == len(limited.advance(0))


@pytest.mark.slow
def test_two_nodes_share_the_quota(tmp_path):
    settings = Settings(data=f"sqlite:///{tmp_path}/shared.db", limits=Limits(ids=3))
    with live_server(settings) as one, live_server(settings) as other:
        clients = [live.client("admin", user="1", channel="777") for live in (one, other)]

        assert [200, 200, 200, 400] == [create(clients[number % 2], "vote", name) for number, name in enumerate("abcd")]
