"""The id quota: polls, rankings, buffers and JSON stores per extension and channel (ruling W10).

What viewers begin counts apart from what owners create: it never keeps an owner from a new id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator.core.callers import Caller, Role
from emulator.core.clock import DAY, HOUR, WEEK, Clock
from emulator.core.keys import Key
from emulator.core.settings import Limits, Settings
from emulator.features.id_quota import IdQuota
from emulator.storage.opening import open_engine
from engines.redis_server import RedisServer
from support.people import Person
from support.seeds import apply
from support.service import CHANNEL, OTHER_ID, Client, LiveServer, live_server
from support.socket_client import linked_game

IDS, SHARE = 8, 2
BODIES = {"vote": {"value": 1}, "rank": {"key": "a"}, "accumulate": {"a": 1}}
POLL = {"prompt": "?", "options": ["a"]}


def settings(data: str = "sqlite://") -> Settings:
    return Settings(data=data, limits=Limits(ids=IDS))


@pytest.fixture(scope="module")
def running_limited() -> Iterator[LiveServer]:
    with live_server(settings()) as live:
        yield live


@pytest.fixture
def limited(running_limited: LiveServer) -> LiveServer:
    """A service with 8 ids for owners and as many for viewers, each of which begins at most 2."""
    running_limited.empty()
    return running_limited


def viewer(live: LiveServer, user: str, channel: str = CHANNEL, **claims: str) -> Client:
    return live.client("viewer", user=user, channel=channel, **claims)


def owner(live: LiveServer, role: str = "broadcaster", channel: str = CHANNEL) -> Client:
    return live.client(role, user=CHANNEL, channel=channel)


def begin(client: Client, *names: str, kind: str = "vote") -> list[int]:
    return [client.post(kind, params={"id": name}, json=BODIES[kind]).status_code for name in names]


def define(client: Client, name: str) -> int:
    return client.post("vote_config", json={"id": name, "config": POLL}).status_code


def names(start: str, count: int) -> list[str]:
    return [f"{start}{number}" for number in range(count)]


def fill(live: LiveServer, *, kind: str = "vote", prefix: str = "") -> None:
    """Have viewers begin all ids that they may."""
    for user in range(IDS // SHARE):
        assert [200] * SHARE == begin(viewer(live, f"1{user}"), *names(f"{prefix}of-{user}-", SHARE), kind=kind)


def fill_own(live: LiveServer, *, kind: str = "vote") -> None:
    """Have the owner create all ids that it may."""
    assert [200] * IDS + [400] == begin(owner(live), *names("own", IDS + 1), kind=kind)


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("prefix", ["", "global-"])
def test_viewers_never_keep_an_owner_from_a_new_id(limited: LiveServer, kind: str, prefix: str):
    fill(limited, kind=kind, prefix=prefix)

    assert [400] == begin(viewer(limited, "99"), f"{prefix}one-more", kind=kind)
    assert [200] * IDS + [400] == begin(owner(limited, "admin"), *names(f"{prefix}own", IDS + 1), kind=kind)


@pytest.mark.parametrize(("prefix", "role"), [("", "broadcaster"), ("", "backend"), ("global-", "admin")])
def test_viewers_never_keep_an_owner_from_defining_a_poll(limited: LiveServer, prefix: str, role: str):
    fill(limited, prefix=prefix)

    assert [200] * IDS + [400] == [define(owner(limited, role), name) for name in names(f"{prefix}own", IDS + 1)]


def test_viewers_vote_in_an_owners_poll_and_owners_define_a_viewers_whatever_is_full(limited: LiveServer):
    limited.freeze()
    fill(limited)
    fill_own(limited)

    for _ in range(3):
        assert [200] * IDS == begin(viewer(limited, "99"), *names("own", IDS))
        limited.advance(DAY)
    assert [200, 400] == [define(owner(limited), name) for name in ("of-0-0", "new")]


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("prefix", ["", "global-"])
def test_one_viewer_begins_at_most_a_quarter_of_what_viewers_may(limited: LiveServer, kind: str, prefix: str):
    new = names(f"{prefix}p", IDS)

    assert [200] * SHARE + [400] * (IDS - SHARE) == begin(viewer(limited, "1"), *new, kind=kind)
    assert [200] * SHARE + [400] * SHARE == begin(viewer(limited, "2"), *new[SHARE : 3 * SHARE], kind=kind)


def test_each_kind_channel_and_extension_has_a_share_of_its_own(limited: LiveServer):
    begin(viewer(limited, "1"), *names("p", SHARE))

    assert [200] == begin(viewer(limited, "1"), "p9", kind="rank")
    assert [200] == begin(viewer(limited, "1", "778"), "p9")
    assert [200] == begin(limited.client("viewer", user="1", channel=CHANNEL, client_id=OTHER_ID), "p9")
    assert [400] == begin(viewer(limited, "1"), "p9")


def test_a_viewer_has_one_share_of_the_global_ids_in_whatever_channel(limited: LiveServer):
    tried = [begin(viewer(limited, "1", f"{number}"), f"global-{number}") for number in range(5)]

    assert [[200]] * SHARE + [[400]] * (5 - SHARE) == tried


def test_a_broadcaster_takes_global_ids_as_a_viewer_does(limited: LiveServer):
    tried = [begin(owner(limited, channel=f"{number}"), f"global-{number}") for number in range(5)]

    assert [[200]] * SHARE + [[400]] * (5 - SHARE) == tried
    assert 200 == define(owner(limited, "admin"), "global-own")


def test_a_person_has_one_share_before_and_after_sharing_their_identity(limited: LiveServer):
    person = Person(limited)
    clients = [person.anonymous, person.shared, person.named, person.anonymous]

    assert [[200], [200], [400], [400]] == [begin(each, f"p{at}") for at, each in enumerate(clients)]


@pytest.mark.parametrize("kind", ["vote", "rank"])
@pytest.mark.parametrize("role", ["broadcaster", "admin"])
def test_an_owners_delete_frees_what_a_viewer_began(limited: LiveServer, kind: str, role: str):
    fill(limited, kind=kind)

    owner(limited, role).delete(kind, params={"id": "of-0-1"}).raise_for_status()

    assert [[400], [200], [400]] == [
        begin(viewer(limited, each), f"new{each}", kind=kind) for each in ("11", "10", "99")
    ]


@pytest.mark.parametrize("keeper", ["1", "2"])
def test_ids_that_are_kept_alive_count_for_the_viewer_who_began_them(limited: LiveServer, keeper: str):
    limited.freeze()
    begin(viewer(limited, "1"), "a", "b")
    for _ in range(5):
        limited.advance(WEEK - DAY)
        begin(viewer(limited, keeper), "a", "b")

    assert [[400], [200, 200, 400]] == [
        begin(viewer(limited, "1"), "c"),
        begin(viewer(limited, "2"), "d", "e", "f"),
    ]


def test_counts_outlive_a_restart(tmp_path: Path):
    data = f"sqlite:///{tmp_path}/data.db"
    with live_server(settings(data)) as live:
        fill(live)
    with live_server(settings(data)) as live:
        assert [[400], [400], [200]] == [
            begin(each, "new") for each in (viewer(live, "10"), viewer(live, "99"), owner(live))
        ]


@pytest.mark.slow
def test_an_owner_begins_an_id_again_that_another_node_deleted(tmp_path: Path):
    """Although this node has counted it within the hour: viewers of that node would have to begin it otherwise."""
    with RedisServer(tmp_path) as server, ExitStack() as stack:
        one, other = (stack.enter_context(live_server(settings(server.url()))) for _ in range(2))
        for kind in ("vote", "rank"):
            begin(owner(one), "own", kind=kind)
            owner(other).delete(kind, params={"id": "own"}).raise_for_status()
            fill(other, kind=kind)

            assert [200] == begin(owner(one), "own", kind=kind)
            assert [200] == begin(viewer(other, "99"), "own", kind=kind)


# A refused or failed write counts nothing


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("vote", {"value": 100}),
        ("vote", {"value": "1"}),
        ("rank", {"key": "x" * 1_025}),
        ("rank", {"text": "x"}),
        ("accumulate", "x" * 254),
    ],
)
def test_invalid_writes_count_nothing(limited: LiveServer, path: str, body: object):
    client = viewer(limited, "1")
    tried = [client.post(path, params={"id": name}, json=body).status_code for name in names("p", 5)]

    assert ([400] * 5, [200, 200, 400]) == (tried, begin(client, "a", "b", "c", kind=path))


@pytest.mark.parametrize(
    ("query", "body"),
    [({"expected": "0" * 64}, {"a": 1}), ({}, {"a": "x" * 2_100}), ({}, [1])],
)
def test_refused_writes_of_json_stores_count_nothing(limited: LiveServer, query: dict[str, str], body: object):
    client = owner(limited)
    for name in names("p", IDS):
        assert client.post("json_store", params={"id": name, **query}, json=body).status_code in (400, 409)

    accepted = [client.post("json_store", params={"id": name}, json={}).status_code for name in names("own", IDS + 1)]
    assert [200] * IDS + [400] == accepted


def test_votes_in_a_closed_poll_that_no_call_counted_count_nothing(limited: LiveServer):
    closed = names("closed", 3)
    apply(limited, polls=[{"id": name, **POLL, "disabled": True} for name in closed])

    assert [400] * 3 == begin(viewer(limited, "1"), *closed)
    assert [200, 200, 400] == begin(viewer(limited, "1"), "a", "b", "c")


def test_a_poll_that_cannot_be_announced_counts_nothing(limited: LiveServer):
    owner(limited).post("channel_state", json={"full": "x" * 65_500}).raise_for_status()
    with linked_game(limited) as game:
        for name in names("p", IDS):
            game.error("create", "poll", {"poll_id": name, **POLL})

    assert [200] * IDS + [400] == [define(owner(limited), name) for name in names("own", IDS + 1)]


# The quota of owners


def test_each_channel_kind_and_extension_has_a_quota_of_its_own(limited: LiveServer):
    fill_own(limited)

    others = [
        begin(owner(limited, channel="778"), "new"),
        begin(limited.client("admin", user="1", channel=CHANNEL, client_id=OTHER_ID), "new"),
        begin(owner(limited, "admin"), "global-new"),
        begin(owner(limited), "new", kind="rank"),
    ]

    assert [[200]] * 4 == others


@pytest.mark.parametrize("kind", ["vote", "rank"])
def test_a_deleted_id_frees_its_place(limited: LiveServer, kind: str):
    fill_own(limited, kind=kind)

    owner(limited).delete(kind, params={"id": "own1"}).raise_for_status()

    assert [200, 400] == begin(owner(limited), "new", "newer", kind=kind)


def test_an_expired_id_frees_its_place_and_one_in_use_stays_counted(limited: LiveServer):
    limited.freeze()
    fill_own(limited, kind="rank")
    limited.advance(20 * HOUR)
    begin(owner(limited), "own0", kind="rank")

    expired = limited.advance(6 * HOUR)

    assert ["rank"] * (IDS - 1) == [each["kind"] for each in expired]
    assert [200] * (IDS - 1) + [400] == begin(owner(limited), *names("new", IDS), kind="rank")


def test_a_reset_frees_all_places(limited: LiveServer):
    fill_own(limited)

    limited.reset()

    fill_own(limited)


def test_a_poll_created_over_the_websocket_counts(limited: LiveServer):
    with linked_game(limited) as game:
        for name in names("p", IDS):
            game.data("create", "poll", {"poll_id": name, **POLL})
        error = game.error("create", "poll", {"poll_id": "new", **POLL})
        state = game.data("get", "state", {"state_id": "channel"})

    assert (400, "Bad Request") == (error["status"], error["title"])
    assert set(names("p", IDS)) == set(state["state"])


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2])
def test_writes_at_the_same_moment_never_exceed_the_quota(tmp_path: Path, nodes: int):
    with RedisServer(tmp_path) as redis, ExitStack() as stack:
        data = "sqlite://" if nodes == 1 else redis.url()
        settings = Settings(data=data, limits=Limits(ids=40))
        services = [stack.enter_context(live_server(settings)) for _ in range(nodes)]

        def write(number: int) -> tuple[str, int]:
            role = "admin" if number < 60 else f"viewer {number % 6}"
            client = services[number % nodes].client(role.split()[0], user=role[-1], channel=CHANNEL)
            return role, begin(client, f"{number}", kind="rank")[0]

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
