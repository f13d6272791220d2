"""Sizes of socket messages: 4 KiB before authentication, 64 KiB of data after it, 2 MiB in all (W8, X2, X3, X9)."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from emulator.core.settings import KIB, MIB, Limits, Settings
from support.pusher_client import PusherClient
from support.service import CLIENT_ID, LiveServer, live_server
from support.socket_client import NO_REQUEST, SocketClient, linked_game

TOO_BIG = 1009
EMPTY_LISTS = ",".join(["[]"] * (2 * MIB // 3 - 100))
"""Nearly 2 MiB that are costly to decode."""


def request(action: str, target: str, request_id: int = 7) -> str:
    """A request without its data."""
    return json.dumps({"action": action, "params": {"request_id": request_id, "target": target}})[:-1]


def test_before_authentication_the_fragments_of_a_message_have_at_most_4_kib(live: LiveServer):
    with SocketClient(live) as stranger:
        with suppress(ConnectionClosed):  # the last fragment may find the connection closed
            stranger.socket.send(["x" * KIB] * 5)
        assert TOO_BIG == stranger.close_code()


def test_a_failed_login_keeps_the_limit(live: LiveServer):
    with SocketClient(live) as stranger:
        assert 401 == stranger.error("authenticate", data={"client_id": CLIENT_ID, "jwt": "x"})["status"]
        stranger.socket.send("x" * (4 * KIB + 1))
        assert TOO_BIG == stranger.close_code()


def test_messages_of_pages_have_at_most_4_kib(live: LiveServer):
    with PusherClient(live) as page:
        page.socket.send(json.dumps({"event": "pusher:ping", "data": {}}).ljust(4 * KIB))
        assert "pusher:pong" == json.loads(page.socket.recv(timeout=5))["event"]
        page.socket.send("x" * (4 * KIB + 1))
        with pytest.raises(ConnectionClosed, match=str(TOO_BIG)):
            page.socket.recv(timeout=5)


def test_a_smaller_frame_limit_holds_before_and_after_authentication():
    with live_server(Settings(limits=Limits(frame=1 * KIB))) as live:
        for client in (SocketClient(live), linked_game(live)):
            with client:
                client.socket.send(" " * KIB)
                assert 400 == client.reply()["errors"][0]["status"]
                client.socket.send(" " * (KIB + 1))
                assert TOO_BIG == client.close_code()


@pytest.mark.parametrize(
    ("action", "target", "data"),
    [
        ("set", "state", '{"state_id":"channel","state":{"x":[%s]}}'),
        ("patch", "state", '{"state_id":"channel","state":{"x":[%s]}}'),
        ("set", "config", '{"config_id":"channel","config":{"x":[%s]}}'),
        ("create", "poll", '{"poll_id":"p","options":[],"user_data":[%s]}'),
        ("broadcast", "", '{"topic":"news","data":[%s]}'),
        ("authenticate", "", '{"client_id":"x","jwt":"x","x":[%s]}'),
        ("subscribe", "state", '{"topic_id":"channel","x":[%s]}'),
    ],
)
def test_a_request_over_64_kib_gets_413_and_changes_nothing(live: LiveServer, action: str, target: str, data: str):
    with linked_game(live) as game:
        game.socket.send(f'{request(action, target)},"data":{data % EMPTY_LISTS}}}')
        reply = game.reply()

        assert {"request_id": 7, "action": action, "target": target} == {
            name: reply["meta"][name] for name in ("request_id", "action", "target")
        }
        (error,) = reply["errors"]
        assert (413, 413, "Content Too Large") == (error["status"], error["number"], error["title"])
        assert "the limit is 65536 for data" in error["detail"]
        assert {"state": {}, "ok": True} == game.data("get", "state", {"state_id": "channel"})


def test_the_limit_for_data_is_the_limit_of_bodies():
    with live_server(Settings(limits=Limits(body=128 * KIB))) as live, linked_game(live) as game:
        assert 400 == game.error("set", "state", {"state_id": "channel", "state": {"x": "y" * 100 * KIB}})["status"]
        error = game.error("set", "state", {"state_id": "channel", "state": {"x": "y" * 140 * KIB}})
        assert (413, True) == (error["status"], "the limit is 131072 for data" in error["detail"])


@pytest.mark.parametrize("target", ["gameMetadata", "gatewayActions", "matchmaking"])
def test_a_large_request_to_a_target_beyond_the_service_gets_404(live: LiveServer, target: str):
    logo = "A" * (1536 * KIB)
    with linked_game(live) as game:
        error = game.error("set", target, {"game_logo": logo})
        assert (404, f"{target} is not part of this service; nothing was done") == (error["status"], error["detail"])


@pytest.mark.parametrize("text", ["[%s]", '{"action":"get","data":[%s', '{"action":[%s]}', '{"params":[%s]}', '"[%s]"'])
def test_a_large_text_that_is_not_a_request_gets_400(live: LiveServer, text: str):
    with linked_game(live) as game:
        game.socket.send(text % EMPTY_LISTS)
        reply = game.reply()

        assert (400, NO_REQUEST) == (reply["errors"][0]["status"], reply["meta"]["request_id"])


def test_large_members_of_a_request_other_than_data_are_not_read(live: LiveServer):
    with linked_game(live) as game:
        game.socket.send(f'{{"action":"get","x":[{EMPTY_LISTS}],"params":{{"request_id":5,"target":"state"}}}}')
        assert (5, 413) == ((reply := game.reply())["meta"]["request_id"], reply["errors"][0]["status"])
        game.socket.send(f'{{"action":"get","params":{{"request_id":5,"target":"state","x":[{EMPTY_LISTS}]}}}}')
        assert (NO_REQUEST, 400) == ((reply := game.reply())["meta"]["request_id"], reply["errors"][0]["status"])


@pytest.mark.parametrize("size", [60 * KIB, 2 * MIB - KIB], ids=["small", "large"])
def test_a_request_nested_too_deeply_gets_400(live: LiveServer, size: int):
    with linked_game(live) as game:
        data = f'{{"state_id":"channel","state":{"[" * (size // 2)}{"]" * (size // 2)}}}'
        game.socket.send(f'{request("set", "state")},"data":{data}}}')
        (error,) = game.reply()["errors"]
        assert (400, "the request is not valid JSON: nested too deeply") == (error["status"], error["detail"])


def test_many_tiny_messages_in_one_packet_have_one_reply_each(live: LiveServer):
    with linked_game(live) as game:
        connection = game.socket.socket
        frame = b"\x81\x80\0\0\0\0"  # an empty text, masked with zeros
        connection.sendall(frame * 5_000)
        replies = [game.reply()["errors"][0]["status"] for _ in range(5_000)]
        assert {400} == set(replies)
        assert {"state": {}, "ok": True} == game.data("get", "state", {"state_id": "channel"})
