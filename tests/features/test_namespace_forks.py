"""Creating, forking, listing and forgetting namespaces (operations, Namespaces)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from emulator.config.settings import Settings
from emulator.opening import open_app
from support.process import wait_until
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, RunningService, live_server
from support.socket_client import SocketClient, linked_game

DAY = 86_400_000
START = 2_000_000_000_000


class Namespaces:
    """The namespaces of one service."""

    def __init__(self, live: LiveServer) -> None:
        self.live = live
        self._http = Client(base_url=live.url)

    def at(self, name: str) -> RunningService:
        return RunningService(f"{self.live.url}/_ns/{name}")

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


def vote(service: RunningService, value: int = 1, user: str = "1") -> None:
    service.client("viewer", user=user, channel=CHANNEL).post("vote", json={"value": value}).raise_for_status()


def count(service: RunningService) -> int:
    return int(service.client("viewer", user="9", channel=CHANNEL).get("vote").raise_for_status().json()["count"])


def test_a_fork_has_the_data_of_its_source_and_leaves_it_alone(of_each_kind: Namespaces):
    source = of_each_kind.at("a")
    vote(source)

    fork = of_each_kind.fork("a", "b")
    vote(fork, user="2")
    vote(source, user="3")
    vote(source, user="4")

    assert (3, 2) == (count(source), count(fork))


def test_a_fork_has_the_clock_of_its_source(spaces: Namespaces):
    spaces.at("a").set(START)
    spaces.at("a").advance(DAY)

    assert START + DAY == spaces.fork("a", "b").now()
    spaces.at("a").advance(DAY)
    assert START + DAY == spaces.at("b").now()


def test_the_default_namespace_can_be_forked(live: LiveServer, spaces: Namespaces):
    vote(live)

    assert 1 == count(spaces.fork("default", "b"))


def test_a_token_of_the_source_is_valid_in_the_fork(spaces: Namespaces):
    body = {"app_id": CLIENT_ID, "channel_id": CHANNEL, "role": "viewer", "user_id": "5551"}
    token = spaces.at("a")._http.post("/v1/e/authtoken", json=body).raise_for_status().json()["token"]

    assert 200 == spaces.fork("a", "b").bearer(token).get("vote").status_code


def test_a_game_works_in_a_fork(spaces: Namespaces):
    vote(spaces.at("a"))

    with linked_game(spaces.fork("a", "b")) as game:
        assert isinstance(game, SocketClient)
        assert 1 == spaces.details()["b"]["sockets"]


def test_a_fork_into_a_namespace_with_data_is_refused(spaces: Namespaces):
    vote(spaces.at("a"))
    vote(spaces.at("b"), user="2")

    refused = spaces.post("/b", **{"from": "a"})

    assert (409, 1) == (refused.status_code, count(spaces.at("b")))
    assert "extcli ns rm b" in refused.text


def test_a_fork_of_an_unknown_namespace_is_refused_and_creates_none(spaces: Namespaces):
    assert 404 == spaces.post("/b", **{"from": "a"}).status_code

    assert {} == spaces.details()


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
        ("/b", {"name": "c"}, "name: 'c' is not the name in the path, 'b'"),
        ("/b?from=a", {"from": "c"}, "from: 'c' is not the source in the query, 'a'"),
        ("", {"name": "b", "drop": "c"}, "drop: must be absent if name or from is given"),
        ("/b", {"drop": "c"}, "drop: 'c' is not the name in the path, 'b'"),
        ("", {"name": "a.b"}, "namespace: must be"),
        ("", "x" * 70_000, "limit is 65536"),
    ],
)
def test_a_body_that_cannot_be_meant_is_refused_and_creates_nothing(spaces: Namespaces, path, body, named: str):
    refused = spaces.send(path, json=body)

    assert refused.status_code in (400, 413)
    assert named in refused.json()["reason"] + refused.text.replace('\\"', "'")
    assert {} == spaces.details()


@pytest.mark.parametrize("path", ["/a.b", "/" + "a" * 65])
def test_a_malformed_name_is_refused(spaces: Namespaces, path: str):
    assert 400 == spaces.post(path).status_code


def test_another_host_can_neither_create_nor_list_namespaces(live: LiveServer):
    with Client(base_url=live.url, headers={"Host": "service.internal"}) as stranger:
        assert [403, 403, 403] == [
            stranger.request(method, path).status_code
            for method, path in (("GET", "/_ns"), ("POST", "/_ns"), ("POST", "/_ns/a"))
        ]


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


def test_an_idle_namespace_is_dropped_and_logged(dropping, caplog: pytest.LogCaptureFixture):
    spaces, drop_idle = dropping
    vote(spaces.at("a"))

    drop_idle(3600)
    assert ["a"] == list(spaces.details())
    with caplog.at_level("INFO", "emulator"):
        drop_idle(0)

    assert {} == spaces.details()
    assert "dropped the namespace a" in caplog.text
    assert 0 == count(spaces.at("a"))


def test_a_moved_clock_makes_no_namespace_idle(dropping):
    spaces, drop_idle = dropping
    spaces.at("a").advance(30 * DAY)

    drop_idle(3600)

    assert ["a"] == list(spaces.details())


def test_a_namespace_with_an_open_socket_is_not_idle(dropping):
    spaces, drop_idle = dropping
    with linked_game(spaces.at("a")):
        drop_idle(0)
        assert ["a"] == list(spaces.details())


def test_a_namespace_is_in_use_until_its_sockets_are_closed(dropping):
    spaces, drop_idle = dropping
    with linked_game(spaces.at("a")):
        spaces.live.service.namespaces._tenants["a"].used_at -= 7200
        drop_idle(3600)
    wait_until(lambda: 0 == spaces.details()["a"]["sockets"])

    drop_idle(3600)

    assert ["a"] == list(spaces.details())


def test_namespaces_are_dropped_by_the_service_itself_if_so_configured():
    with live_server(Settings(namespace_idle=0.01)) as live:
        spaces = Namespaces(live)
        spaces.post("/a").raise_for_status()
        wait_until(lambda: not spaces.details())


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        (Settings(), 24 * 3600),
        (Settings(namespace_idle=60), 60),
        (Settings(namespace_idle=0), None),
        (Settings(data="file", has_peers=True), None),
        (Settings(data="file"), 24 * 3600),
    ],
)
async def test_idle_namespaces_live_a_day_unless_configured(tmp_path: Path, settings: Settings, seconds: int | None):
    """Of several workers, none sees the requests of the others, so none drops what it does not use itself."""
    data = f"sqlite://{tmp_path}/data.db" if settings.data == "file" else settings.data
    async with open_app(replace(settings, data=data)) as (_, service):
        assert service.namespaces is not None
        assert seconds == service.namespaces.max_idle
