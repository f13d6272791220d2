"""One connection to the service, for one request at a time.

Each connection has its own httpx client. In a shared client every request searches all connections at each step, which
costs more than the request itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from extcli import clock
from extcli.api import bodies
from extcli.api.call import Call
from extcli.api.http import Answer, bound, client_options, explained, headers, httpx, probe_id
from extcli.bulk.input_lines import Line


@dataclass(slots=True)
class Job:
    """A line ready to send."""

    line: Line
    call: Call
    authorization: str


class Connection:
    """Connects on first use, and reconnects after the service closes the connection."""

    def __init__(self, url: str, timeout: float, *, trace: Callable[[str], None] | None = None) -> None:
        self._url = url
        self._trace = trace
        self._client = httpx.AsyncClient(limits=httpx.Limits(max_connections=1), **client_options(url, timeout))

    async def send(self, job: Job) -> Answer:
        """Send the request and return the answer, whatever its status. Raises `Unreachable`."""
        call = job.call
        fields = headers(call.body, job.authorization)
        if call.is_probe:
            fields["x-request-id"] = probe_id()
        with explained(self._url):
            request = self._client.build_request(
                call.method,
                self._url + call.path,
                params=call.query,
                content=call.body,
                headers=fields,
            )
            if self._trace is None:
                return await self._sent(request)
            return await self._send_traced(request, job, self._trace)

    async def _send_traced(self, request: httpx.Request, job: Job, trace: Callable[[str], None]) -> Answer:
        """Send and trace. Connections write traces concurrently, so each names its line."""
        number = job.line.number
        trace(f"> line {number}: {request.method} {request.url}")
        trace(f"> line {number}: authorization: {job.authorization.split(' ')[0]} ***")
        trace(f"> line {number}: {len(request.content)} bytes")
        started = clock.elapsed()
        answer = await self._sent(request)
        milliseconds = (clock.elapsed() - started) * 1000
        trace(f"< line {number}: {answer.status_code} {answer.reason_phrase}, {milliseconds:.1f} ms")
        return answer

    async def _sent(self, request: httpx.Request) -> Answer:
        answer = await self._client.send(request, stream=True)
        try:
            bound(answer, self._url, limit=bodies.PROBE)
            await answer.aread()
        finally:
            await answer.aclose()
        return answer

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()
