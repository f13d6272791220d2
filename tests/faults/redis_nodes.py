"""Nodes on Redis, a monitor of their health, and the line of figures that a test prints."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from engines.redis_server import RedisServer
from faults.crowd import Crowd
from support.process import ServerProcess, server_process
from support.service import CHANNEL, Client, RunningService
from support.socket_client import SocketClient

MAX_RESPONSE_TIME = 3.5
"""Seconds for any call, whatever Redis does: the timeout of two, and some for a busy machine."""
MAX_RECOVERY_TIME = 15.0
"""Seconds for nodes to recover on their own once Redis works."""
MAX_LIVE_TIME = 1.0
"""Seconds for `live`, on a busy machine."""
_INTERVAL = 0.02


@contextmanager
def nodes(*urls: str) -> Iterator[list[ServerProcess]]:
    """Start a node on each URL, in parallel, without logs of refusals."""
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        each = [server_process("--data", url, "--log-level", "critical") for url in urls]
        yield list(pool.map(stack.enter_context, each))


@contextmanager
def two_nodes(server: RedisServer) -> Iterator[list[ServerProcess]]:
    with nodes(server.url(), server.url()) as both:
        yield both


class Watch:
    """Polls `live` and `ready` of a node, and records statuses, the slowest responses and stalls of this machine."""

    def __init__(self, node: RunningService) -> None:
        self._node = node
        self._stopping = threading.Event()
        self.slowest_live = self.slowest_ready = self.longest_stall = 0.0
        self.ready_statuses: set[tuple[int, str | None]] = set()
        """Each status of `ready`, with its `Retry-After`."""

    def __enter__(self) -> Self:
        self._threads = [
            threading.Thread(target=each) for each in (self._poll_live, self._poll_ready, self._poll_machine)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=60)

    def check(self) -> None:
        """Assert that `live` was always fast, `ready` failed for a while, and no response was slow.

        A machine without free memory can stall all its processes for many seconds.
        """
        stall = f"this machine stalled for {self.longest_stall:.2f} s"
        assert self.slowest_live < MAX_LIVE_TIME + self.longest_stall, f"live took {self.slowest_live:.2f} s; {stall}"
        assert self.slowest_ready < MAX_RESPONSE_TIME + self.longest_stall, (
            f"ready took {self.slowest_ready:.2f} s; {stall}"
        )
        assert {(200, None), (503, "1")} == self.ready_statuses

    def _poll_live(self) -> None:
        with Client(base_url=self._node.url) as http:
            while not self._stopping.wait(_INTERVAL):
                started = time.monotonic()
                http.get("/_emulator/live").raise_for_status()
                self.slowest_live = max(self.slowest_live, time.monotonic() - started)

    def _poll_machine(self) -> None:
        started = time.monotonic()
        while not self._stopping.wait(_INTERVAL):
            self.longest_stall = max(self.longest_stall, time.monotonic() - started - _INTERVAL)
            started = time.monotonic()

    def _poll_ready(self) -> None:
        with Client(base_url=self._node.url) as http:
            while not self._stopping.wait(_INTERVAL):
                started = time.monotonic()
                answer = http.get("/_emulator/ready")
                self.ready_statuses.add((answer.status_code, answer.headers.get("retry-after")))
                self.slowest_ready = max(self.slowest_ready, time.monotonic() - started)


def is_ready(node: RunningService) -> bool:
    with Client(base_url=node.url) as http:
        return http.get("/_emulator/ready").status_code == 200


def seconds_until(condition: Callable[[], bool], within: float = MAX_RECOVERY_TIME) -> float:
    """Wait until the condition holds; return the seconds that took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() < started + within, f"the condition did not hold within {within} s"
        time.sleep(_INTERVAL)
    return time.monotonic() - started


def wait_for_broadcast(node: RunningService, game: SocketClient) -> float:
    """Broadcast on a node until a game on another node receives one; return the seconds that took."""
    sent = {"at": time.monotonic_ns()}

    def is_received() -> bool:
        broadcaster.post("broadcast", json={"event": "news", "data": sent})
        with suppress(TimeoutError):
            while json.loads(game.socket.recv(timeout=0.1)).get("data", {}).get("data") != sent:
                pass
            return True
        return False

    with node.client("broadcaster", user=CHANNEL, channel=CHANNEL) as broadcaster:
        return seconds_until(is_received)


def check_account(crowd: Crowd, node: RunningService, *notes: str, keeps_all: bool = True) -> None:
    """Print the account; assert that no write was done twice or in part, and that no acknowledged one is lost.

    A refused write may be done, as its reply may have been lost. `keeps_all=False` allows losses.
    """
    account = crowd.account(node).show(", ".join(notes) or "Redis failed")
    assert not account.wrong, account
    assert [] == account.lost or not keeps_all, account


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
