"""Votes without pause, until the service dies."""

from __future__ import annotations

import threading
from itertools import count

import httpx

from support.service import RunningService

VOTERS = 4


class Voters:
    """Threads that vote without pause until the service dies, and the acknowledged votes."""

    def __init__(self, served: RunningService, name: str) -> None:
        self.acknowledged: dict[str, int] = {}
        self._counted = threading.Semaphore(0)
        self._threads = [
            threading.Thread(target=self._vote, args=(served, f"{name}-{number}")) for number in range(VOTERS)
        ]
        for thread in self._threads:
            thread.start()

    def wait_for(self, votes: int, seconds: float = 10) -> None:
        """Wait until this many more votes are acknowledged, each within these seconds."""
        for _ in range(votes):
            assert self._counted.acquire(timeout=seconds), "the service does not answer"

    def join(self) -> None:
        for thread in self._threads:
            thread.join(timeout=10)

    def _vote(self, served: RunningService, voter: str) -> None:
        for number in count():
            user = f"{voter}-{number}"
            client = served.client("viewer", user=user, channel="777")
            try:
                answer = client.post("vote", json={"value": number % 64})
            except httpx.TransportError:
                return
            if answer.status_code == 200:
                self.acknowledged[user] = number % 64
                self._counted.release()
