"""Reads and writes state over the socket."""

from __future__ import annotations

from typing import Any

from support.socket_client import SocketClient


def state(game: SocketClient, state_id: str = "channel") -> dict[str, Any]:
    """Read a state."""
    return dict(game.data("get", "state", {"state_id": state_id})["state"])


def set_state(game: SocketClient, document: object, state_id: str = "channel") -> dict[str, Any]:
    """Replace a state; returns the response."""
    return game.data("set", "state", {"state_id": state_id, "state": document})


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    """The body of a patch of the channel state."""
    return {"state_id": "channel", "state": list(operations)}


def updates(game: SocketClient, number: int) -> list[Any]:
    """The next updates, after checking that there are no more."""
    seen = [game.update()["data"] for _ in range(number)]
    assert game.no_update()
    return seen
