"""Sockets over several workers: each receives every update once, whichever worker holds it."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.broadcasts import PREFIX
from support.process import ServerProcess, server_process
from support.pusher_client import PusherClient, decode_frame, parse_broadcast, subscribed_page
from support.service import CLIENT_ID, Client
from support.socket_client import SocketClient, request_pin

pytestmark = pytest.mark.long

MIN_SOCKETS, MAX_SOCKETS = 8, 40
"""Sockets to open until both workers hold some."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServerProcess]:
    """Two workers on one port and one file."""
    with server_process("--workers", "2", "--data", f"sqlite:///{tmp_path}/data.db") as served:
        yield served


@pytest.fixture
def games(served: ServerProcess) -> Iterator[list[SocketClient]]:
    """Unauthenticated sockets, spread over the workers."""
    with ExitStack() as stack:
        games = [stack.enter_context(SocketClient(served)) for _ in range(MIN_SOCKETS)]
        while not are_spread(served, games) and len(games) < MAX_SOCKETS:
            games.append(stack.enter_context(SocketClient(served)))
        yield games


def are_spread(served: ServerProcess, games: Sequence[SocketClient | PusherClient]) -> bool:
    """Whether some worker holds some of the sockets, but not all."""
    for _ in range(10):
        with Client(base_url=served.url) as fresh:  # a new connection, so any worker may accept it
            metrics = fresh.get("/_emulator/metrics").text
        (held,) = re.findall(r"(?m)^emulator_sockets (\S+)", metrics)
        if 0 < float(held) < len(games):
            return True
    return False


def authenticate_all(served: ServerProcess, games: list[SocketClient]) -> None:
    """Authenticate all sockets with one PIN of one worker."""
    pin = request_pin(served)
    for game in games:
        game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})


def test_each_change_reaches_the_sockets_of_all_workers_once(served: ServerProcess, games: list[SocketClient]):
    assert are_spread(served, games)
    authenticate_all(served, games)
    for game in games:
        game.data("subscribe", "state", {"topic_id": "channel"})
        game.data("subscribe", "poll", {"topic_id": "rps"})
        game.data("subscribe", "broadcast", {"topic_id": "*"})
    broadcaster = served.client("broadcaster", user="777", channel="777")
    viewer = served.client("viewer", user="5551", channel="777")

    def updates(target: str) -> list[object]:
        received = [game.update() for game in games]
        assert {target} == {update["meta"]["target"] for update in received}
        return [update["data"] for update in received]

    broadcaster.post("channel_state", json={"round": 1}).raise_for_status()
    state = updates("channel")
    viewer.post("vote?id=rps", json={"value": 2}).raise_for_status()
    poll = updates("poll")
    broadcasts = []
    for number, game in enumerate(games):
        game.data("broadcast", data={"topic": "hit", "data": {"number": number}})
        broadcasts += updates("hit")

    assert all(each == state[0] for each in state)
    assert all(each == poll[0] for each in poll)
    assert [number for number in range(len(games)) for _ in games] == [each["data"]["number"] for each in broadcasts]
    assert all(game.no_update() for game in games)


@pytest.mark.ruling("B5")
def test_pages_of_all_workers_receive_votes_and_writes_once(served: ServerProcess):
    with ExitStack() as stack:
        pages = [stack.enter_context(subscribed_page(served)) for _ in range(MIN_SOCKETS)]
        while not are_spread(served, pages) and len(pages) < MAX_SOCKETS:
            pages.append(stack.enter_context(subscribed_page(served)))
        assert are_spread(served, pages)

        served.client("broadcaster", user="777", channel="777").post("channel_state", json={"round": 1})
        state = [parse_broadcast(decode_frame(page.frame())) for page in pages]
        served.client("viewer", user="5551", channel="777").post("vote?id=rps", json={"value": 2})
        votes = [parse_broadcast(decode_frame(page.frame())) for page in pages]

        assert all((each.event, each.data) == (f"{PREFIX}channel_state_update", {"round": 1}) for each in state)
        assert all((each.event, each.data["stats"]["sum"]) == (f"{PREFIX}vote_update:rps", 2) for each in votes)
        assert all([] == page.broadcasts() for page in pages)


def test_messages_of_one_socket_reach_all_workers_in_order(served: ServerProcess, games: list[SocketClient]):
    authenticate_all(served, games)
    for game in games:
        game.data("subscribe", "broadcast", {"topic_id": "hit"})

    for number in range(50):
        games[0].send("broadcast", data={"topic": "hit", "data": {"number": number}})
    for _ in range(50):
        games[0].reply()

    for game in games:
        assert list(range(50)) == [game.update()["data"]["data"]["number"] for _ in range(50)]


def test_every_socket_reads_what_another_wrote(served: ServerProcess, games: list[SocketClient]):
    authenticate_all(served, games)
    for number, game in enumerate(games):
        game.data("set", "state", {"state_id": "channel", "state": {"number": number}})

        states = [each.data("get", "state", {"state_id": "channel"})["state"] for each in games]

        assert [{"number": number}] * len(games) == states


def test_a_refresh_token_works_with_every_worker(served: ServerProcess, games: list[SocketClient]):
    refresh = str(games[0].data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(served)})["refresh"])

    for game in games:
        refresh = str(game.data("authenticate", data={"client_id": CLIENT_ID, "refresh": refresh})["refresh"])


def test_a_stop_closes_the_sockets_of_all_workers(served: ServerProcess, games: list[SocketClient]):
    assert 0 == served.stop(signal.SIGTERM)

    assert [1001] * len(games) == [game.close_code() for game in games]
