"""Redis is emptied under the service, or comes back without its data: old and new nodes are one again, and say it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import redis

from engines.redis_server import RedisServer
from faults.redis_nodes import is_ready, ms, seconds_until
from support.process import ServerProcess, server_process
from support.service import CHANNEL, CLIENT_ID, SECRET, real_seconds
from support.socket_client import SocketClient


def linked(pins: ServerProcess, games: ServerProcess) -> str:
    """A token by a PIN of one node, which a game has used on another."""
    with pins.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=real_seconds() + 600) as broadcaster:
        pin = broadcaster.post("link/pin").raise_for_status().json()["pin"]
    with SocketClient(games) as game:
        return str(game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})["jwt"])


def statuses(token: str, *nodes: ServerProcess) -> set[int]:
    return {node.bearer(token).get("user_info").status_code for node in nodes}


def says(node: ServerProcess, words: str) -> None:
    assert node.process.stderr is not None
    assert any(words in line for line in node.process.stderr)


@pytest.mark.parametrize("how", ["FLUSHALL", "restart"])
def test_nodes_whose_data_are_gone_go_on_with_a_new_one_as_one_service(tmp_path: Path, how: str) -> None:
    file = tmp_path / "extensions.toml"
    file.write_text(f'[extensions.{CLIENT_ID}]\nsecrets = ["{base64.b64encode(SECRET).decode()}"]\n')
    with RedisServer(tmp_path) as server:
        options = ("--production", "--extensions", str(file), "--data", server.url(), "--log-level", "warning")
        with server_process(*options) as one, server_process(*options) as other:
            token = linked(one, other)
            assert {200} == statuses(token, one, other)

            if how == "restart":
                server.kill()
                server.start()
            else:
                redis.Redis.from_url(server.url()).flushall()

            with server_process(*options) as fresh:
                back = seconds_until(lambda: is_ready(one) and is_ready(other))
                again = linked(one, fresh)
                assert {200} == statuses(again, one, other, fresh) == statuses(linked(fresh, other), one, other, fresh)
                assert {401} == statuses(token, one, other, fresh)
            print(f"\nall of it is gone; one service again after {ms(back)}")  # noqa: T201 - seen with -s only
            says(one, "the data was deleted or replaced")
