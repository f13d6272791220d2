"""One connection to the service, for one request at a time.

Each connection has its own httpx client. In a shared client every request searches all connections at each step, which
costs more than the request itself.
"""

from __future__ import annotations

from collections.abc import Callable

from extcli import clock
from extcli.api.client import Call
from extcli.api.http import Answer, client_options, explained, headers, httpx


class Connection:
    """Connects on first use, and reconnects after the service closes the connection."""

    def __init__(self, url: str, timeout: float, *, trace: Callable[[str], None] | None = None) -> None:
        self._url = url
        self._trace = trace
        self._client = httpx.AsyncClient(limits=httpx.Limits(max_connections=1), **client_options(url, timeout))

    async def send(self, call: Call, authorization: str, *, line: int) -> Answer:
        """Send the request of this line and return the answer, whatever its status. Raises `Unreachable`."""
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
        """Send and trace. Connections write traces concurrently, so each names its line."""
        trace(f"> line {line}: {request.method} {request.url}")
        trace(f"> line {line}: authorization: {authorization.split(' ')[0]} ***")
        trace(f"> line {line}: {len(request.content)} bytes")
        started = clock.elapsed()
        answer = await self._client.send(request)
        milliseconds = (clock.elapsed() - started) * 1000
        trace(f"< line {line}: {answer.status_code} {answer.reason_phrase}, {milliseconds:.1f} ms")
        return answer

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()
