"""One connection to the service, for one request after the other.

Each lane has an httpx client of its own: in a client shared by many requests, every request looks through all
connections at each step, which costs more than the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extcli import clock
from extcli.api.client import Call
from extcli.api.http import Answer, client_options, explained, headers, httpx

if TYPE_CHECKING:
    from extcli.output.printer import Output


class Lane:
    """Sends one request at a time; it connects when it is first used, and again when the service hung up."""

    def __init__(self, url: str, timeout: float, *, traced_by: Output | None = None) -> None:
        self._url = url
        self._traced_by = traced_by
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
            if self._traced_by is None:
                return await self._client.send(request)
            return await self._send_traced(request, authorization, line, self._traced_by)

    async def _send_traced(self, request: httpx.Request, authorization: str, line: int, output: Output) -> Answer:
        """Lanes write in between each other, so each trace names its line of the input."""
        output.trace(f"> line {line}: {request.method} {request.url}")
        output.trace(f"> line {line}: authorization: {authorization.split(' ')[0]} ***")
        output.trace(f"> line {line}: {len(request.content)} bytes")
        started = clock.elapsed()
        answer = await self._client.send(request)
        milliseconds = (clock.elapsed() - started) * 1000
        output.trace(f"< line {line}: {answer.status_code} {answer.reason_phrase}, {milliseconds:.1f} ms")
        return answer

    async def close(self) -> None:
        """Give the connection back."""
        await self._client.aclose()
