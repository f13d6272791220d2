"""Sends broadcasts in every form of request, and reads what games and pages receive."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import httpx

from support.pusher_client import subscribed_page
from support.service import CHANNEL, CLIENT_ID, Client, RunningService
from support.socket_client import SocketClient

CALLS = ["broadcast", "extension_broadcast", "broadcast_extension", "whisper_self"]
PREFIX = f"sandbox:{CLIENT_ID}:"
"""The part of an event's full name before the developer's name."""
MESSAGE = {"event": "news", "data": {"é": [1, None, {"deep": True}]}}

Send = Callable[[Client, str, dict[str, Any]], httpx.Response]


def get_with_body(client: Client, call: str, body: dict[str, Any]) -> httpx.Response:
    return client.request("GET", call, json=body)


def get_with_query(client: Client, call: str, body: dict[str, Any]) -> httpx.Response:
    return client.get(call, params=body | ({"data": json.dumps(body["data"])} if "data" in body else {}))


def post(client: Client, call: str, body: dict[str, Any]) -> httpx.Response:
    return client.post(call, json=body)


def post_as_form(client: Client, call: str, body: dict[str, Any]) -> httpx.Response:
    form = {"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"}
    return client.post(call, content=json.dumps(body), headers=form)


def post_json_string(client: Client, call: str, body: dict[str, Any]) -> httpx.Response:
    return client.post(call, json=json.dumps(body))


def post_in_chunks(client: Client, call: str, body: dict[str, Any]) -> httpx.Response:
    return client.post(call, content=(bytes([each]) for each in json.dumps(body).encode()))


REQUEST_FORMS = [get_with_body, get_with_query, post, post_as_form, post_json_string, post_in_chunks]


REQUEST_FORMS = [get_with_body, get_with_query, post, post_as_form, post_json_string, post_in_chunks]


def name_of(method: Send) -> str:
    """Return the id of a parameter."""
    return method.__name__


def assert_ok(answer: httpx.Response) -> None:
    """Assert that a call succeeded and returned an empty object."""
    assert (200, "application/json", {}) == (answer.status_code, answer.headers["content-type"], answer.json())


def error_of(answer: httpx.Response) -> tuple[int, str]:
    """Return status and reason of a failed call."""
    assert answer.json()["info"]
    return answer.status_code, answer.json()["reason"]


def subscribed_game(live: RunningService, role: str, client_id: str = CLIENT_ID, **claims: Any) -> SocketClient:
    """Return a game that authenticated with a self-signed token and subscribed to all events."""
    client = live.client(role, client_id=client_id, **{"channel": CHANNEL} | claims)
    game = SocketClient(live, f"/0.2.0/{client_id}")
    game.data("authenticate", data={"client_id": client_id, "jwt": client.headers["Authorization"].split()[1]})
    game.data("subscribe", "*")
    return game


def events_of(game: SocketClient, number: int = 1) -> list[Any]:
    """Return event, data, channel and scope of the next updates, and assert that there are exactly `number`."""
    updates = [game.update() for _ in range(number)]
    assert game.no_update()
    assert [each["meta"]["target"] for each in updates] == [each["data"]["event"] for each in updates]
    return [tuple(each["data"][name] for name in ("event", "data", "channel_id", "scope")) for each in updates]


class Audience:
    """A page and a game of one extension in one channel."""

    def __init__(
        self, stack: ExitStack, live: RunningService, channel: str = CHANNEL, client_id: str = CLIENT_ID
    ) -> None:
        self.page = stack.enter_context(subscribed_page(live, channel, client_id))
        self.game = stack.enter_context(subscribed_game(live, "viewer", client_id, user="5551", channel=channel))

    def events(self) -> list[str]:
        """Return the developer's names of all events, and assert that page and game received the same."""
        names = [each.event.rpartition(":")[2] for each in self.page.broadcasts()]
        assert names == [each[0] for each in events_of(self.game, len(names))]
        return names
