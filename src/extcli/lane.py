"""One connection to the service, for one request after the other.

Each lane has an httpx client of its own: in a client shared by many requests, every request looks through all
connections at each step, which costs more than the request.
"""

from __future__ import annotations

from extcli.client import Call
from extcli.http import client_options, explained, headers, httpx


class Lane:
    """Sends one request at a time; it connects when it is first used, and again when the service hung up."""

    def __init__(self, url: str, timeout: float) -> None:
        self._url = url
        self._client = httpx.AsyncClient(limits=httpx.Limits(max_connections=1), **client_options(url, timeout))

    async def send(self, call: Call, authorization: str) -> tuple[int, bytes]:
        """The status and body of the answer, whatever it is. Raises `Unreachable`."""
        with explained(self._url):
            answer = await self._client.request(
                call.method,
                self._url + call.path,
                params=call.query,
                content=call.body,
                headers=headers(call.body, authorization),
            )
            return answer.status_code, answer.content

    async def close(self) -> None:
        """Give the connection back."""
        await self._client.aclose()
