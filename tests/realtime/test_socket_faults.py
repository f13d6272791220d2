"""Faults of the game socket: of messages and of handshakes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from support.faults import RawClient, add_fault, faults_of, hits_of, remove_faults
from support.journal import entries_of
from support.process import wait_until
from support.pusher_client import KEY, QUERY, PusherClient
from support.service import CLIENT_ID, Client, LiveServer
from support.socket_client import SocketClient, linked_game

CHANNEL_STATE = {"state_id": "channel"}
GAME = f"/0.2.0/{CLIENT_ID}"
PAGE = f"/app/{KEY}{QUERY}"


def set_state(game: SocketClient, number: int) -> int:
    """Send a message that changes the state of the channel, and return its request id."""
    return game.send("set", "state", {"state_id": "channel", "state": {"round": number}})


def is_silent(game: SocketClient) -> bool:
    """Return whether nothing arrives."""
    try:
        game.socket.recv(timeout=0.2)
    except TimeoutError:
        return True
    return False


@pytest.fixture
def raw(live: LiveServer) -> Iterator[RawClient]:
    """A TCP connection."""
    with RawClient(live) as raw:
        yield raw


# Messages


def test_a_fault_replies_to_a_message_in_the_usual_envelope(live: LiveServer, game: SocketClient):
    add_fault(live, "SOCKET set state", "status", status=503)

    reply = game.request("set", "state", {"state_id": "channel", "state": {"round": 1}})

    assert {"action": "set", "target": "state"}.items() <= reply["meta"].items()
    (error,) = reply["errors"]
    assert {"status": 503, "title": "Service Unavailable"}.items() <= error.items()
    assert "fault f1 answered 503; remove it with `extcli fault rm f1`" == error["detail"]
    assert {} == game.data("get", "state", CHANNEL_STATE)["state"]


def test_a_dropped_message_gets_no_reply_and_does_nothing(live: LiveServer, game: SocketClient):
    add_fault(live, "SOCKET set state", "drop", times=1)

    set_state(game, 1)

    assert {} == game.data("get", "state", CHANNEL_STATE)["state"], "its reply is the first"
    assert [(0, "f1", "Fault")] == [
        (each["status"], each["fault"], each["reason"]) for each in entries_of(live, kind="frame", path="set state")
    ]


def test_a_delayed_message_keeps_the_order_of_replies(live: LiveServer, game: SocketClient):
    add_fault(live, "SOCKET set state", "delay", delay=60_000)

    first = set_state(game, 1)
    second = game.send("get", "state", CHANNEL_STATE)
    wait_until(lambda: [1] == hits_of(live))
    assert is_silent(game)
    remove_faults(live)

    assert [first, second] == [game.reply()["meta"]["request_id"] for _ in range(2)]
    assert {"round": 1} == game.data("get", "state", CHANNEL_STATE)["state"]


def test_a_reset_of_a_message_resets_the_connection(live: LiveServer, game: SocketClient):
    add_fault(live, "SOCKET set *", "reset")

    set_state(game, 1)

    with pytest.raises(ConnectionClosed) as lost:
        game.message()
    assert lost.value.rcvd is None


def test_a_fault_closes_the_connection_with_its_code(live: LiveServer, game: SocketClient, stranger: Client):
    add_fault(live, "SOCKET set state", "close", code=1013)

    set_state(game, 1)

    assert 1013 == game.close_code()
    assert "fault f1 closed the connection" == game.socket.close_reason
    frames = entries_of(live, kind="frame")
    assert [("close", 1013, "f1"), ("set state", 0, "f1")] == [
        (each["endpoint"], each["status"], each["fault"]) for each in frames[-2:]
    ]
    explained = stranger.get("/_emulator/explain", params={"id": frames[-1]["id"]}).json()
    assert "docs: Faults" == explained["explanation"]["rule"]
    assert "extcli fault rm f1" in explained["explanation"]["next_step"]


def test_a_stalled_connection_stays_silent_until_the_fault_is_removed(live: LiveServer, game: SocketClient, stranger):
    game.data("subscribe", "state", {"topic_id": "channel"})
    add_fault(live, "SOCKET get state", "stall")

    game.send("get", "state", CHANNEL_STATE)
    wait_until(lambda: [1] == hits_of(live))
    live.client("broadcaster", user="777", channel="777").post("channel_state", json={"round": 2}).raise_for_status()

    assert is_silent(game)
    assert [True] == [each["stalled"] for each in stranger.get("/_emulator/sockets").json()["sockets"]]
    remove_faults(live)
    assert {"round": 2} == game.update()["data"]["state"]
    assert {"round": 2} == game.data("get", "state", CHANNEL_STATE)["state"], "the stalled message gets no reply"


@pytest.mark.parametrize(
    "condition",
    [{"role": "broadcaster"}, {"channel": "777"}, {"user": "777"}, {"user": "U777"}, {"client_id": CLIENT_ID}],
)
def test_conditions_choose_the_connections_that_a_fault_acts_on(live: LiveServer, game: SocketClient, condition):
    add_fault(live, "SOCKET get state", "status", **condition)
    others = {name: "viewer" if name == "role" else "other" for name in condition}
    add_fault(live, "SOCKET get state", "status", **others)

    assert "fault f1 " in game.error("get", "state", CHANNEL_STATE)["detail"]


def test_faulty_logins_do_not_count_as_failed_attempts(live: LiveServer, unlinked: SocketClient):
    add_fault(live, "SOCKET authenticate", "status", status=429, times=20)

    assert {429} == {unlinked.error("authenticate", data={"pin": "WRONG"})["status"] for _ in range(20)}
    assert 429 != unlinked.error("authenticate", data={"pin": "WRONG"})["status"]


# Handshakes


@pytest.mark.parametrize("path", [GAME, PAGE])
def test_a_fault_refuses_handshakes_of_games_and_pages(live: LiveServer, raw: RawClient, path: str):
    add_fault(live, "SOCKET connect", "status", status=502, retry_after=2)

    raw.handshake(path)

    answer = raw.rest()
    assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert b"x-emulator-fault: f1; effect=status\r\n" in answer.lower()
    assert b"retry-after: 2\r\n" in answer.lower()
    assert "Fault" == json.loads(answer.partition(b"\r\n\r\n")[2])["reason"]


@pytest.mark.parametrize("path", [GAME, PAGE])
def test_a_dropped_handshake_ends_without_a_response(live: LiveServer, raw: RawClient, path: str):
    add_fault(live, "SOCKET connect", "drop")

    raw.handshake(path)

    assert b"" == raw.rest()
    assert [(0, "f1")] == [(each["status"], each["fault"]) for each in entries_of(live, search="fault f1")]


@pytest.mark.parametrize("path", [GAME, PAGE])
def test_a_handshake_can_be_reset(live: LiveServer, raw: RawClient, path: str):
    add_fault(live, "SOCKET connect", "reset")

    raw.handshake(path)

    with pytest.raises(ConnectionResetError):
        raw.rest()


@pytest.mark.parametrize("path", [GAME, PAGE])
@pytest.mark.parametrize("end", [remove_faults, LiveServer.reset])
def test_a_stalled_handshake_ends_with_its_fault(live: LiveServer, raw: RawClient, path: str, end):
    add_fault(live, "SOCKET connect", "stall")

    raw.handshake(path)
    wait_until(lambda: [1] == hits_of(live))

    assert raw.is_silent()
    end(live)
    assert b"" == raw.rest()


def test_a_delayed_handshake_opens_the_connection_later(live: LiveServer, raw: RawClient):
    add_fault(live, "SOCKET connect", "delay", delay=60_000, client_id=CLIENT_ID)

    raw.handshake(GAME)
    wait_until(lambda: [1] == hits_of(live))
    assert raw.is_silent()
    remove_faults(live)

    answer = raw.socket.recv(4_096)
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert b"x-emulator-fault: f1; effect=delay\r\n" in answer.lower()


def test_a_client_that_leaves_a_stalled_handshake_frees_it(live: LiveServer):
    add_fault(live, "SOCKET connect", "stall")
    before = len(live.run(_tasks()))
    with RawClient(live) as raw:
        raw.handshake(GAME)
        wait_until(lambda: [1] == hits_of(live))

    assert wait_until(lambda: len(live.run(_tasks())) <= before)


def test_a_handshake_fault_of_an_extension_spares_others(live: LiveServer):
    add_fault(live, "SOCKET connect", "status", client_id="another")

    with linked_game(live), PusherClient(live):
        pass
    with pytest.raises(InvalidStatus):
        SocketClient(live, "/0.2.0/another")
    assert [1] == [fault["hits"] for fault in faults_of(live)]


async def _tasks() -> set[object]:
    import asyncio

    return {*asyncio.all_tasks()}


def test_a_connection_closes_with_1012_when_the_fault_names_no_code(live: LiveServer, game: SocketClient):
    add_fault(live, "SOCKET * *", "close")

    game.send("get", "state", CHANNEL_STATE)

    assert 1012 == game.close_code()
