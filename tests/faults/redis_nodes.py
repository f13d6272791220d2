"""Nodes on Redis, whoever looks at whether they are well, and the line that a test prints of what it saw."""

from __future__ import annotations

import json
import os
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

SECONDS = float(os.environ.get("FAULT_SECONDS", "3"))
"""How long a fault lasts that lasts."""
PATIENCE = 3.5
"""Seconds in which every call is answered, whatever Redis does: its own two, and some of a busy machine."""
RECOVERY = 15.0
"""Seconds in which nodes are well again after Redis is, without anybody's help."""
LIVELY = 1.0
"""Seconds in which a process says that it lives, on a machine that others use too."""
_EVERY = 0.02


@contextmanager
def nodes(*urls: str) -> Iterator[list[ServerProcess]]:
    """A node on each of these; they do not log what they refuse."""
    with ExitStack() as stack, ThreadPoolExecutor() as at_once:
        each = [server_process("--data", url, "--log-level", "critical") for url in urls]
        yield list(at_once.map(stack.enter_context, each))


@contextmanager
def two_nodes(server: RedisServer) -> Iterator[list[ServerProcess]]:
    with nodes(server.url(), server.url()) as both:
        yield both


class Watch:
    """Asks a node again and again whether it lives and whether it is ready, and remembers what it said."""

    def __init__(self, node: RunningService) -> None:
        self._node = node
        self._stopping = threading.Event()
        self.slowest_live = self.slowest_ready = 0.0
        self.said: set[tuple[int, str | None]] = set()
        """The statuses of `ready`, each with its `Retry-After`."""

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=each) for each in (self._ask_live, self._ask_ready)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=20)

    def check(self) -> None:
        """It was alive at once all the time, was not ready for a while, and let nobody wait."""
        assert self.slowest_live < LIVELY, f"it took {self.slowest_live:.2f} s to say that it lives"
        assert self.slowest_ready < PATIENCE, f"it took {self.slowest_ready:.2f} s to say whether it is ready"
        assert {(200, None), (503, "1")} == self.said

    def _ask_live(self) -> None:
        with Client(base_url=self._node.url) as http:
            while not self._stopping.wait(_EVERY):
                began = time.monotonic()
                http.get("/_emulator/live").raise_for_status()
                self.slowest_live = max(self.slowest_live, time.monotonic() - began)

    def _ask_ready(self) -> None:
        with Client(base_url=self._node.url) as http:
            while not self._stopping.wait(_EVERY):
                began = time.monotonic()
                answer = http.get("/_emulator/ready")
                self.said.add((answer.status_code, answer.headers.get("retry-after")))
                self.slowest_ready = max(self.slowest_ready, time.monotonic() - began)


def is_ready(node: RunningService) -> bool:
    with Client(base_url=node.url) as http:
        return http.get("/_emulator/ready").status_code == 200


def seconds_until(condition: Callable[[], bool], within: float = RECOVERY) -> float:
    """Ask until it is so; returns how many seconds that took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + within, f"it did not come true within {within} s"
        time.sleep(_EVERY)
    return time.monotonic() - began


def until_heard(node: RunningService, game: SocketClient) -> float:
    """Broadcast on a node until a game of another has heard of it; returns how many seconds that took."""
    sent = {"at": time.monotonic_ns()}

    def is_heard() -> bool:
        broadcaster.post("broadcast", json={"event": "news", "data": sent})
        with suppress(TimeoutError):
            while json.loads(game.socket.recv(timeout=0.1)).get("data", {}).get("data") != sent:
                pass
            return True
        return False

    with node.client("broadcaster", user=CHANNEL, channel=CHANNEL) as broadcaster:
        return seconds_until(is_heard)


def settle(crowd: Crowd, node: RunningService, *notes: str, keeps_all: bool = True) -> None:
    """Say what became of the crowd's writes, none of which was done twice or by half.

    What was refused may have been done, as its answer may have been lost. Nothing acknowledged is lost, if all is kept.
    """
    account = crowd.account(node)
    figures = (
        f"acknowledged {account.acknowledged}, found {account.found}, lost {len(account.lost)}",
        f"refused {account.refused} (done {len(account.refused_done)})",
        f"unknown {account.unknown} (done {account.unknown_done})",
    )
    print("\n" + ", ".join([*figures, *notes]))  # noqa: T201 - seen with -s only
    assert [] == account.wrong
    assert [] == account.lost or not keeps_all, account


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
