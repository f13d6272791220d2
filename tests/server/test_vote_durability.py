"""If the service is killed, no acknowledged vote is lost."""

from __future__ import annotations

import threading
from itertools import count
from pathlib import Path

import httpx

from support.process import ServerProcess, server_process

ROUNDS = 5
VOTERS = 4
ENOUGH = 60


class Voters:
    """Threads that vote without pause until the service dies, and the acknowledged votes."""

    def __init__(self, served: ServerProcess, name: str) -> None:
        self.acknowledged: dict[str, int] = {}
        self._counted = threading.Semaphore(0)
        self._threads = [
            threading.Thread(target=self._vote, args=(served, f"{name}-{number}")) for number in range(VOTERS)
        ]
        for thread in self._threads:
            thread.start()

    def wait_for(self, votes: int) -> None:
        for _ in range(votes):
            assert self._counted.acquire(timeout=10), "the service does not answer"

    def join(self) -> None:
        for thread in self._threads:
            thread.join(timeout=10)

    def _vote(self, served: ServerProcess, voter: str) -> None:
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


def test_a_killed_service_loses_no_acknowledged_vote(tmp_path: Path):
    data = f"sqlite:///{tmp_path}/votes.db"
    acknowledged: dict[str, int] = {}
    for number in range(ROUNDS):
        with server_process("--data", data) as served:
            voters = Voters(served, str(number))
            voters.wait_for(ENOUGH)
            served.process.kill()
            voters.join()
        acknowledged |= voters.acknowledged

    with server_process("--data", data) as served:
        backend = served.client("backend", channel="777")
        kept = {entry["identifier"]: entry["value"] for entry in backend.get("vote_logs").json()["result"]}
        stats = backend.get("vote").json()

    assert {} == {user: value for user, value in acknowledged.items() if kept.get(user) != value}
    assert len(acknowledged) >= ROUNDS * ENOUGH
    assert (len(kept), sum(kept.values())) == (stats["count"], stats["sum"])
