"""Large responses to clients that do not read: each connection holds a few of their bytes."""

from __future__ import annotations

import socket

import pytest

from emulator.http import http_protocol
from support.process import wait_until
from support.service import Client, live_server

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
