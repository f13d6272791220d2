"""`/_ns/<name>/…` addresses an isolated service (operations, Namespaces)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.config.settings import Limits, Settings
from emulator.core.keys import NEVER, Key
from emulator.process.opening import open_app
from emulator.storage.shapes import CastRequest
from support.service import CLIENT_ID, Client, LiveServer, RunningService, live_server
from support.socket_client import SocketClient, linked_game, request_pin

DAY = 86_400_000


class Namespace(RunningService):
    """A namespace of a running service."""

    def __init__(self, live: RunningService, name: str) -> None:
        super().__init__(f"{live.url}/_ns/{name}")

    def count(self) -> int:
        """Return the number of votes in the poll `default` of channel 777."""
        return int(self.client("viewer", user="1", channel="777").get("vote").raise_for_status().json()["count"])

    def vote(self) -> None:
        """Cast a vote in that poll."""
        self.client("viewer", user="1", channel="777").post("vote", json={"value": 1}).raise_for_status()


@pytest.fixture
def blue(live: LiveServer) -> Iterator[Namespace]:
    """The namespace `blue`, new."""
    namespace = Namespace(live, "blue")
    yield namespace
    Client().delete(namespace.url)


@pytest.mark.parametrize("path", ["/ws", "/", "", f"/0.2.0/{CLIENT_ID}", f"/0.2.0/gateway-unity/1.0.3/{CLIENT_ID}"])
def test_a_namespace_has_its_own_socket_at_every_path(blue: Namespace, path: str):
    with SocketClient(blue, path) as game:
        reply = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(blue)})

    assert "777" == reply["twitch_id"]


def test_pins_and_refresh_tokens_work_only_in_their_namespace(live: LiveServer, blue: Namespace):
    with SocketClient(blue) as game:
        refresh = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(blue)})["refresh"]

    with SocketClient(live) as game:
        by_pin = game.error("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(blue)})
        by_refresh = game.error("authenticate", data={"client_id": CLIENT_ID, "refresh": refresh})

    assert (400, 400) == (by_pin["status"], by_refresh["status"])


def test_updates_stay_in_their_namespace(live: LiveServer, blue: Namespace):
    with linked_game(live) as outside, linked_game(blue) as inside:
        for game in (outside, inside):
            game.data("subscribe", "state", {"topic_id": "channel"})

        blue.client("broadcaster", user="777", channel="777").post("channel_state", json={"round": 4})

        assert {"round": 4} == inside.update()["data"]["state"]
        assert outside.no_update()


def test_dropping_a_namespace_ends_its_data_and_connections(blue: Namespace):
    blue.vote()
    with linked_game(blue) as game:
        answer = Client().delete(blue.url)

        assert (200, {}) == (answer.status_code, answer.json())
        assert 1001 == game.close_code()
    assert 0 == blue.count()


@pytest.mark.parametrize("name", ["a" * 65, "a.b", "a%20b", "ä"])
def test_an_invalid_name_is_refused(live: LiveServer, name: str):
    answer = Client().get(f"{live.url}/_ns/{name}/v1/e/vote")

    assert (400, "Invalid namespace") == (answer.status_code, answer.json()["reason"])


def test_repeated_slashes_around_the_name_collapse(blue: Namespace, live: LiveServer):
    blue.vote()
    viewer = live.client("viewer", user="1", channel="777")

    answer = viewer.get(f"{live.url}//_ns//blue//v1/e/vote")

    assert 1 == answer.json()["count"]


@pytest.mark.slow
def test_the_number_of_open_namespaces_is_limited():
    with live_server(Settings(limits=Limits(namespaces=2))) as live:
        counts = [Namespace(live, name).count() for name in ("a", "b")]

        answer = Client().get(f"{live.url}/_ns/c/v1/e/vote")

        assert ([0, 0], 429) == (counts, answer.status_code)
        Client().delete(f"{live.url}/_ns/a").raise_for_status()
        assert 0 == Namespace(live, "c").count()


def test_data_and_clock_of_a_namespace_are_its_own_until_it_is_reset_or_dropped(live: LiveServer, blue: Namespace):
    default = Namespace(live, "default")
    live.client("viewer", user="1", channel="777").post("vote", json={"value": 1})
    blue.vote()
    blue.freeze()
    blue.advance(DAY)

    assert (1, 1, 0) == (blue.count(), default.count(), Namespace(live, "a" * 64).count())
    assert blue.now() - live.now() > DAY - 60_000
    assert {"blue"} == listed(live) & {"blue", "default"}
    blue.reset()
    assert (0, 1) == (blue.count(), default.count())
    for each in (blue, default):
        Client().delete(each.url).raise_for_status()
    assert set() == listed(live) & {"blue", "default"}
    assert 0 == default.count()


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/blue"), ("GET", ""), ("POST", ""), ("POST", "/red")])
@pytest.mark.parametrize("headers", [{"Origin": "https://page.example"}, {"Host": "service.internal"}], ids=str)
def test_pages_and_clients_of_other_hosts_cannot_drop_list_or_create(live, blue: Namespace, method, path, headers):
    blue.vote()

    answer = Client().request(method, f"{live.url}/_ns{path}", headers=headers)

    assert (403, False, 1) == (answer.status_code, "access-control-allow-origin" in answer.headers, blue.count())


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
        new = await namespaces.front("blue")
        await new.engine.ballots.cast(poll, CastRequest("U1", "1"), now=1, expires_at=NEVER)

    async with open_app(settings) as (_, service):
        namespaces = service.namespaces
        await namespaces.front("blue")
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
        tally = await (await service.namespaces.front("blue")).engine.ballots.tally(poll, now=1)
        assert (("1", 1),) == tally.counts
