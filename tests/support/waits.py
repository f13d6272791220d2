"""Waits for conditions, in this thread or in others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import httpx

from support.process import wait_until
from support.service import CHANNEL, CLIENT_ID, Client, RunningService

LONG = 60_000
"""Ms that no test waits for."""


def ask(
    service: RunningService, subject: str, id: str = "", *, timeout: int = 0, **parameters: object
) -> httpx.Response:
    """Ask the service to wait for a condition of channel 777, by default not at all; return the response."""
    query = {"for": subject, "id": id, "timeout": timeout, "client_id": CLIENT_ID, "channel_id": CHANNEL}
    with Client(base_url=service.url) as client:
        client.timeout = httpx.Timeout(2 * LONG / 1000)
        return client.get(f"{service.url}/_emulator/wait", params=query | parameters)


def held(service: RunningService) -> int:
    """Return the number of requests that the service holds."""
    with Client() as client:
        text = client.get(f"{service.url}/_emulator/metrics").text
    return next(int(float(line.split()[1])) for line in text.splitlines() if line.startswith("emulator_held_requests "))


class Waiting:
    """Threads that wait."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    def begin(self, service: RunningService, *args: str, **parameters: object) -> Future[httpx.Response]:
        """Begin a long wait, and return its response to come once the service holds it."""
        before = held(service)
        future = self._threads.submit(ask, service, *args, **{"timeout": LONG} | parameters)  # type: ignore[arg-type]
        wait_until(lambda: held(service) > before)
        return future


@contextmanager
def waiting() -> Iterator[Waiting]:
    """Yield threads that wait, and wait for them to end."""
    with ThreadPoolExecutor(8) as threads:
        yield Waiting(threads)
