"""Redis loses its data under the service: old and new nodes act as one service again."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from engines.redis_server import RedisServer
from faults.redis_nodes import is_ready, ms, seconds_until
from support.extension_files import write_extensions
from support.process import ServerProcess, server_process
from support.service import CHANNEL, CLIENT_ID, real_seconds
from support.socket_client import SocketClient


def linked_token(pins: ServerProcess, games: ServerProcess) -> str:
    """Return a token that a game gets on one node for a PIN of another."""
    with pins.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=real_seconds() + 600) as broadcaster:
        pin = broadcaster.post("link/pin").raise_for_status().json()["pin"]
    with SocketClient(games) as game:
        return str(game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})["jwt"])


def statuses(token: str, *nodes: ServerProcess) -> set[int]:
    return {node.bearer(token).get("user_info").status_code for node in nodes}


def wait_for_log(node: ServerProcess, text: str) -> None:
    assert node.process.stderr is not None
    assert any(text in line for line in node.process.stderr)


@pytest.mark.long
def test_nodes_agree_with_a_new_node_after_redis_lost_its_data(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        extensions = write_extensions(tmp_path)
        options = ("--production", "--extensions", extensions, "--data", server.url(), "--log-level", "warning")
        with server_process(*options) as one, server_process(*options) as other:
            token = linked_token(one, other)
            assert {200} == statuses(token, one, other)

            redis.Redis.from_url(server.url()).flushall()

            with server_process(*options) as fresh:
                back = seconds_until(lambda: is_ready(one) and is_ready(other))
                again = linked_token(one, fresh)
                assert (
                    {200}
                    == statuses(again, one, other, fresh)
                    == statuses(linked_token(fresh, other), one, other, fresh)
                )
                assert {401} == statuses(token, one, other, fresh)
            print(f"\ndata lost; consistent again after {ms(back)}")  # noqa: T201 - seen with -s only
            wait_for_log(one, "the data was deleted or replaced")
