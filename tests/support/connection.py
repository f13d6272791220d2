"""HTTP connections for tests of concurrency."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from support.service import Client, LiveServer


class Connection:
    """An HTTP connection for one client. Many can be used concurrently, which httpx's pool would queue."""

    def __init__(self, live: LiveServer, client: Client) -> None:
        self._address = live.url.removeprefix("http://").split(":")
        self._credential = client.headers["Authorization"]

    async def __aenter__(self) -> Connection:
        host, port = self._address
        self._reader, self._writer = await asyncio.open_connection(host, int(port))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def post(self, path: str, body: object) -> dict[str, Any]:
        """POST `body`; returns the response body, and fails on any status but 200."""
        status, answer = await self.send(path, body)
        assert 200 == status, answer
        return answer

    async def send(self, path: str, body: object) -> tuple[int, dict[str, Any]]:
        """POST `body`; returns status and response body."""
        text = json.dumps(body)
        self._writer.write(
            f"POST /v1/e/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {self._credential}\r\n"
            f"Content-Length: {len(text)}\r\n\r\n{text}".encode()
        )
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split("\r\n")[0])
        return int(head.split()[1]), json.loads(await self._reader.readexactly(length))
