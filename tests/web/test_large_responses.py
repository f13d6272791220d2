"""Responses to clients that do not read, or that leave: each connection holds few bytes, and nothing after its end."""

from __future__ import annotations

import socket
from typing import Any

import httpx
import pytest

from emulator.http import http_protocol
from support.process import wait_until
from support.service import Client, live_server
from support.waits import held

KIB = 1024
MANY = 8_192 * KIB
"""More bytes than the system buffers for a connection."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "/schema/swagger-ui-bundle.js",
        "/schema/swagger-ui.css",
        "/schema/openapi.json",
        "/_emulator/ui/static/dashboard.css",
        "/v1/e/channel_state",
    ],
)
def test_a_connection_holds_few_bytes_for_a_client_that_does_not_read(monkeypatch: pytest.MonkeyPatch, path: str):
    connections: list[http_protocol.Protocol] = []

    class Observed(http_protocol.Protocol):
        def pause_writing(self) -> None:
            super().pause_writing()
            connections.append(self)

    monkeypatch.setattr("emulator.process.http_server.HttpProtocol", Observed)
    with live_server() as live, live.connect() as connection:
        admin = live.client("admin", user="1", channel="777")
        admin.post("channel_state", json={"a": "x" * 60_000}).raise_for_status()
        headers = {"Authorization": admin.headers["Authorization"], "Host": "localhost"}
        with Client(base_url=live.url) as client:
            size = len(client.get(path, headers=headers).raise_for_status().content)
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        request = f"GET {path} HTTP/1.1\r\n{head}\r\n".encode()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
        connection.sendall(request * (MANY // size))

        wait_until(lambda: connections)
        held = live.run(size_of(connections[0]))

    assert 64 * KIB < held < 192 * KIB


async def size_of(connection: http_protocol.Protocol) -> int:
    return connection.transport.get_write_buffer_size()


class Broken(Exception):
    """The connection is lost while a message is sent."""


class Breaking:
    """An application whose streams break at a message of a type. It keeps the errors, and with them the frames."""

    def __init__(self, app: Any, at: str, kept: list[Exception]) -> None:
        self.app, self.at, self.kept = app, at, kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self.app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            if scope["path"].endswith(("/stream", "/events")) and message["type"] == self.at:
                raise Broken
            await send(message)

        try:
            await self.app(scope, receive, sending)
        except Exception as error:
            self.kept.append(error)
            raise


@pytest.mark.parametrize("at", ["http.response.start", "http.response.body"])
@pytest.mark.parametrize("path", ["/_emulator/journal/stream", "/_emulator/ui/requests/events"])
def test_a_stream_whose_connection_breaks_is_no_longer_held(path: str, at: str):
    kept: list[Exception] = []
    with live_server(wrap=lambda app: Breaking(app, at, kept)) as live:
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{live.url}{path}").raise_for_status()
        wait_until(lambda: kept)

        assert 0 == held(live)
