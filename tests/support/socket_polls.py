"""Creates, changes and reads polls over the socket."""

from __future__ import annotations

from typing import Any

from support.service import CHANNEL, LiveServer
from support.socket_client import SocketClient

OPTIONS = ["Blue", "Red", "Orange"]


def create(game: SocketClient, poll_id: str = "color", **members: Any) -> dict[str, Any]:
    """Create a poll with `OPTIONS`."""
    body = {"poll_id": poll_id, "prompt": "Which?", "options": OPTIONS, **members}
    return game.data("create", "poll", body)


def poll(game: SocketClient, poll_id: str = "color") -> dict[str, Any]:
    """Return the answer to `get poll`."""
    return game.data("get", "poll", {"poll_id": poll_id})


def subscribe(game: SocketClient, poll_id: str = "color") -> None:
    """Subscribe to a poll."""
    game.data("subscribe", "poll", {"topic_id": poll_id})


def configure(game: SocketClient, poll_id: str = "color", **config: object) -> dict[str, Any]:
    """Change a poll's settings."""
    return game.data("reconfigure", "poll", {"poll_id": poll_id, "config": config})


def vote(live: LiveServer, user: str, value: int, poll_id: str = "color", channel: str = CHANNEL) -> int:
    """Vote over REST; returns the status."""
    viewer = live.client("viewer", user=user, channel=channel)
    return viewer.post("vote", params={"id": poll_id}, json={"value": value}).status_code


def statuses(game: SocketClient, number: int) -> list[str]:
    """The poll statuses of the next updates, after checking that there are no more."""
    seen = [game.update()["data"]["poll"]["status"] for _ in range(number)]
    assert game.no_update()
    return seen
