"""`/_ns/<name>/…` addresses an isolated service (operations, Namespaces)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from emulator.core.keys import NEVER, Key
from emulator.core.settings import Limits, Settings
from emulator.process.opening import open_app
from emulator.storage.shapes import CastRequest
from engines.redis_server import RedisServer
from support.process import wait_until
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, RunningService, live_server
from support.socket_client import SocketClient, linked_game, request_pin

DAY = 86_400_000


def at(live: RunningService, name: str) -> RunningService:
    return RunningService(f"{live.url}/_ns/{name}")


def vote(service: RunningService, value: int = 1, user: str = "1") -> None:
    service.client("viewer", user=user, channel=CHANNEL).post("vote", json={"value": value}).raise_for_status()


def count(service: RunningService) -> int:
    return int(service.client("viewer", user="9", channel=CHANNEL).get("vote").raise_for_status().json()["count"])


@pytest.fixture
def blue(live: LiveServer) -> Iterator[RunningService]:
    """The namespace `blue`, new."""
    namespace = at(live, "blue")
    yield namespace
    Client().delete(namespace.url)


@pytest.mark.parametrize("path", ["/ws", "/", "", f"/0.2.0/{CLIENT_ID}", f"/0.2.0/gateway-unity/1.0.3/{CLIENT_ID}"])
def test_a_namespace_has_its_own_socket_at_every_path(blue: RunningService, path: str):
    with SocketClient(blue, path) as game:
        reply = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(blue)})

    assert "777" == reply["twitch_id"]


def test_pins_and_refresh_tokens_work_only_in_their_namespace(live: LiveServer, blue: RunningService):
    with SocketClient(blue) as game:
        refresh = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(blue)})["refresh"]

    with SocketClient(live) as game:
        by_pin = game.error("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(blue)})
        by_refresh = game.error("authenticate", data={"client_id": CLIENT_ID, "refresh": refresh})

    assert (400, 400) == (by_pin["status"], by_refresh["status"])


def test_dropping_a_namespace_ends_its_data_and_connections(blue: RunningService):
    vote(blue)
    with linked_game(blue) as game:
        answer = Client().delete(blue.url)

        assert (200, {}) == (answer.status_code, answer.json())
        assert 1001 == game.close_code()
    assert 0 == count(blue)


@pytest.mark.slow
def test_the_number_of_open_namespaces_is_limited():
    with live_server(Settings(limits=Limits(namespaces=2))) as live:
        counts = [count(at(live, name)) for name in ("a", "b")]

        answer = Client().get(f"{live.url}/_ns/c/v1/e/vote")

        assert ([0, 0], 429) == (counts, answer.status_code)
        Client().delete(f"{live.url}/_ns/a").raise_for_status()
        assert 0 == count(at(live, "c"))


def test_data_and_clock_of_a_namespace_are_its_own_until_it_is_reset_or_dropped(live: LiveServer, blue: RunningService):
    default = at(live, "default")
    live.client("viewer", user="1", channel="777").post("vote", json={"value": 1})
    vote(blue)
    blue.freeze()
    blue.advance(DAY)

    assert (1, 1, 0) == (count(blue), count(default), count(at(live, "a" * 64)))
    assert blue.now() - live.now() > DAY - 60_000
    assert {"blue"} == listed(live) & {"blue", "default"}
    blue.reset()
    assert (0, 1) == (count(blue), count(default))
    for each in (blue, default):
        Client().delete(each.url).raise_for_status()
    assert set() == listed(live) & {"blue", "default"}
    assert 0 == count(default)


def listed(live: LiveServer) -> set[str]:
    return set(Client().get(f"{live.url}/_ns/").raise_for_status().json()["namespaces"])


async def test_a_namespace_that_opens_during_a_drop_keeps_its_data(tmp_path: Path):
    """Closing a dropped namespace deletes what has its name in the file, so the next use must wait for that."""
    settings = Settings(data=f"sqlite://{tmp_path}/data.db")
    poll = Key("poll", CLIENT_ID, "p", "777")
    closing, go_on = asyncio.Event(), asyncio.Event()

    async def pause() -> None:
        closing.set()
        await go_on.wait()

    async def vote() -> None:
        new = await namespaces.open("blue")
        await new.engine.ballots.cast(poll, CastRequest("U1", "1"), now=1, expires_at=NEVER)

    async with open_app(settings) as (_, service):
        namespaces = service.namespaces
        await namespaces.open("blue")
        tenant = namespaces._tenants["blue"]
        tenant.stack.push_async_callback(pause)  # runs before the service is closed
        dropping = asyncio.create_task(namespaces.drop("blue"))
        await closing.wait()
        using = asyncio.create_task(vote())
        while not (using.done() or tenant.changing._waiters):  # noqa: ASYNC110 - a lock has no event for a waiter
            await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(dropping, using)

    async with open_app(settings) as (_, service):
        tally = await (await service.namespaces.open("blue")).engine.ballots.tally(poll, now=1)
        assert (("1", 1),) == tally.counts


# Creating, forking, listing and forgetting


START = 2_000_000_000_000


class Namespaces:
    """The namespaces of one service."""

    def __init__(self, live: LiveServer) -> None:
        self.live = live
        self._http = Client(base_url=live.url)

    def at(self, name: str) -> RunningService:
        return at(self.live, name)

    def post(self, path: str, **query: str) -> httpx.Response:
        return self._http.post(f"/_ns{path}", params=query)

    def send(self, path: str, **body: Any) -> httpx.Response:
        return self._http.post(f"/_ns{path}", **body)

    def fork(self, source: str, name: str) -> RunningService:
        assert {"namespace": name} == self.post(f"/{name}", **{"from": source}).raise_for_status().json()
        return self.at(name)

    def details(self) -> dict[str, dict[str, Any]]:
        listing = self._http.get("/_ns").raise_for_status().json()
        assert listing["namespaces"] == sorted(each["name"] for each in listing["details"])
        return {each["name"]: each for each in listing["details"]}

    def clear(self) -> None:
        for name in self.details():
            self._http.delete(f"/_ns/{name}").raise_for_status()


@pytest.fixture
def spaces(live: LiveServer) -> Iterator[Namespaces]:
    spaces = Namespaces(live)
    spaces.clear()
    yield spaces
    spaces.clear()


@pytest.fixture(params=["memory", "file"])
def of_each_kind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Namespaces]:
    """The namespaces of a service in memory, then of one on a file."""
    data = "sqlite://" if request.param == "memory" else f"sqlite://{tmp_path}/data.db"
    with live_server(Settings(data=data)) as live:
        yield Namespaces(live)


def test_a_fork_has_data_clock_and_tokens_of_its_source_and_leaves_it_alone(of_each_kind: Namespaces):
    source = of_each_kind.at("a")
    source.set(START)
    vote(source)
    body = {"app_id": CLIENT_ID, "channel_id": CHANNEL, "role": "viewer", "user_id": "5551"}
    token = source._http.post("/v1/e/authtoken", json=body).raise_for_status().json()["token"]

    fork = of_each_kind.fork("a", "b")
    vote(fork, user="2")
    vote(source, user="3")
    vote(source, user="4")
    source.advance(DAY)

    assert (3, 2) == (count(source), count(fork))
    assert (START + DAY, START) == (source.now(), fork.now())
    assert 200 == fork.bearer(token).get("vote").status_code


def test_a_fork_into_data_or_of_an_unknown_namespace_is_refused(spaces: Namespaces):
    for name in "ab":
        vote(spaces.at(name))

    assert [409, 404] == [
        spaces.post(path, **{"from": source}).status_code for path, source in (("/b", "a"), ("/d", "c"))
    ]
    assert ["a", "b"] == list(spaces.details())
    assert 1 == count(spaces.at("b"))


def test_a_new_namespace_is_empty_and_gets_a_free_name_if_none_is_given(spaces: Namespaces):
    names = [spaces.post("").raise_for_status().json()["namespace"] for _ in range(2)]

    assert sorted(names) == sorted(spaces.details())
    assert {"namespace": "red"} == spaces.post("/red").raise_for_status().json()
    assert 0 == spaces.details()["red"]["records"]


@pytest.mark.parametrize("path", ["", "/", "/b"])
@pytest.mark.parametrize("form", [False, True])
def test_the_body_may_name_the_namespace_and_its_source(spaces: Namespaces, path: str, form: bool):
    vote(spaces.at("a"))

    body = {"name": "b", "from": "a"}
    created = spaces.send(path, **({"data": body} if form else {"json": body}))

    assert (200, {"namespace": "b"}) == (created.status_code, created.json())
    assert 1 == count(spaces.at("b"))


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/b", {"name": "c"}, "name: "),
        ("/b?from=a", {"from": "c"}, "from: "),
        ("", {"name": "b", "drop": "c"}, "drop: "),
        ("/b", {"drop": "c"}, "drop: "),
        ("", {"name": "a.b"}, "namespace: "),
        ("/a.b", {}, "namespace: "),
        ("/" + "a" * 65, {}, "namespace: "),
    ],
)
def test_a_body_that_cannot_be_meant_is_refused_and_creates_nothing(spaces: Namespaces, path, body, named: str):
    refused = spaces.send(path, json=body)

    assert (400, True) == (refused.status_code, refused.json()["info"].startswith(named))
    assert {} == spaces.details()


def test_the_list_shows_data_age_last_use_and_sockets(spaces: Namespaces):
    vote(spaces.at("a"))

    details = spaces.details()["a"]

    assert details.pop("records") > 0
    assert {"name": "a", "age": 0, "idle": 0, "sockets": 0} == details


@pytest.fixture
def dropping() -> Iterator[tuple[Namespaces, Callable[[float], None]]]:
    """Namespaces, and a function that drops those that were idle for some seconds."""
    with live_server() as live:
        yield Namespaces(live), lambda idle: live.run(live.service.namespaces.drop_idle(idle))


def test_an_idle_namespace_is_dropped_and_logged_unless_a_socket_is_open(dropping, caplog: pytest.LogCaptureFixture):
    spaces, drop_idle = dropping
    vote(spaces.at("a"))
    spaces.at("a").advance(30 * DAY)

    drop_idle(3600)
    with linked_game(spaces.at("a")):
        assert 1 == spaces.details()["a"]["sockets"]
        drop_idle(0)
    assert ["a"] == list(spaces.details())
    wait_until(lambda: 0 == spaces.details()["a"]["sockets"])
    with caplog.at_level("INFO", "emulator"):
        drop_idle(0)

    assert {} == spaces.details()
    assert "dropped the namespace a" in caplog.text


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [(Settings(), 24 * 3600), (Settings(namespace_idle=60), 60), (Settings(namespace_idle=0), None)],
)
async def test_idle_namespaces_live_a_day_unless_configured(settings: Settings, seconds: int | None):
    async with open_app(settings) as (_, service):
        assert service.namespaces is not None
        assert seconds == service.namespaces.max_idle


@pytest.mark.slow
async def test_idle_namespaces_on_redis_stay_because_other_nodes_may_use_them(tmp_path: Path):
    with RedisServer(tmp_path) as redis:
        async with open_app(Settings(data=redis.url())) as (_, service):
            assert service.namespaces is not None
            assert service.namespaces.max_idle is None


# Namespaces that a file holds from an earlier process


@pytest.fixture
def stored_settings(tmp_path: Path) -> Settings:
    """The settings of a service on a file that has the namespaces `blue`, with a vote, and `empty`."""
    settings = Settings(data=f"sqlite://{tmp_path}/data.db", limits=Limits(namespaces=2))
    with live_server(settings) as live:
        vote(at(live, "blue"))
        live._http.post("/_ns/empty").raise_for_status()
        live._http.post("/_emulator/reset?undo=60").raise_for_status()
    return settings


@pytest.fixture
def stored(stored_settings: Settings) -> Iterator[Namespaces]:
    with live_server(stored_settings) as live:
        yield Namespaces(live)


def opened(live: LiveServer) -> int:
    assert live.service.namespaces is not None
    return len(live.service.namespaces.open_services) - 1


def test_stored_namespaces_are_listed_with_their_records_and_none_is_opened(stored: Namespaces):
    before = stored.details()

    assert ["blue", "empty"] == list(before)
    assert all((0, 0) == (each["sockets"], each["idle"]) for each in before.values())
    assert 0 == opened(stored.live)
    assert (1, 0) == (count(stored.at("blue")), count(stored.at("empty")))
    assert [each["records"] for each in before.values()] == [each["records"] for each in stored.details().values()]


def test_a_stored_namespace_can_be_a_source_but_not_a_target_of_a_fork(stored: Namespaces):
    assert 409 == stored.post("/blue", **{"from": "default"}).status_code
    assert (1, 1) == (count(stored.fork("blue", "copy")), count(stored.at("blue")))


def test_a_stored_namespace_can_be_dropped_without_opening_it(stored_settings: Settings):
    with live_server(stored_settings) as live:
        live._http.delete("/_ns/blue").raise_for_status()

        assert ["empty"] == live._http.get("/_ns").json()["namespaces"]
        assert 0 == opened(live)
    with live_server(stored_settings) as live:
        assert ["empty"] == live._http.get("/_ns").json()["namespaces"]
        assert 0 == count(at(live, "blue"))


def test_stored_namespaces_are_idle_from_the_start_of_the_process(stored: Namespaces):
    live, listed = stored.live, []
    for idle in (3600, 0):
        live.run(live.service.namespaces.drop_idle(idle))
        listed.append(list(stored.details()))

    assert [["blue", "empty"], []] == listed
