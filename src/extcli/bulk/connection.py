"""One connection to the service, for one request after the other.

Each lane has an httpx client of its own: in a client shared by many requests, every request looks through all
connections at each step, which costs more than the request.
"""

from __future__ import annotations

from collections.abc import Callable

from extcli import clock
from extcli.api.client import Call
from extcli.api.http import Answer, client_options, explained, headers, httpx


class Connection:
    """Sends one request at a time; it connects when it is first used, and again when the service hung up."""

    def __init__(self, url: str, timeout: float, *, trace: Callable[[str], None] | None = None) -> None:
        self._url = url
        self._trace = trace
        self._client = httpx.AsyncClient(limits=httpx.Limits(max_connections=1), **client_options(url, timeout))

    async def send(self, call: Call, authorization: str, *, line: int) -> Answer:
        """The answer for this line of the input, whatever it is. Raises `Unreachable`."""
        with explained(self._url):
            request = self._client.build_request(
                call.method,
                self._url + call.path,
                params=call.query,
                content=call.body,
                headers=headers(call.body, authorization),
            )
            if self._trace is None:
                return await self._client.send(request)
            return await self._send_traced(request, authorization, line, self._trace)

    async def _send_traced(
        self, request: httpx.Request, authorization: str, line: int, trace: Callable[[str], None]
    ) -> Answer:
        """Lanes write in between each other, so each trace names its line of the input."""
        trace(f"> line {line}: {request.method} {request.url}")
        trace(f"> line {line}: authorization: {authorization.split(' ')[0]} ***")
        trace(f"> line {line}: {len(request.content)} bytes")
        started = clock.elapsed()
        answer = await self._client.send(request)
        milliseconds = (clock.elapsed() - started) * 1000
        trace(f"< line {line}: {answer.status_code} {answer.reason_phrase}, {milliseconds:.1f} ms")
        return answer

    async def close(self) -> None:
        """Give the connection back."""
        await self._client.aclose()
