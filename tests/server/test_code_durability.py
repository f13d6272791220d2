"""If a service or its Redis is killed, no reward code is handed out twice and none is lost (ruling C2)."""

from __future__ import annotations

import json
import os
import random
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from engines.redis_server import RedisServer
from support.process import ServerProcess, server_process
from support.service import Client

pytestmark = pytest.mark.long

ROUNDS = int(os.environ.get("ROUNDS", "4"))
"""How often to kill something."""
CODES = [f"CODE-{number:05}" for number in range(20_000)]
USERS = [str(number) for number in range(40)]
MARKS = {"prizes": [0] * 500 + [1] * 500, "prize_limits": [500, 500], "users": USERS}
RANDOM = random.Random(8)

Nodes = Sequence[ServerProcess]


class Redeemers:
    """Threads that redeem without pause from two sets, and the codes each user received."""

    def __init__(self, nodes: Nodes) -> None:
        self.received: dict[str, list[str]] = {user: [] for user in USERS}
        self._counted = threading.Semaphore(0)
        self._is_over = threading.Event()
        groups = [(nodes[start % len(nodes)], USERS[start::4]) for start in range(4)]
        self._threads = [threading.Thread(target=self._redeem, args=group) for group in groups]
        for thread in self._threads:
            thread.start()

    def wait_for(self, codes: int) -> None:
        for _ in range(codes):
            assert self._counted.acquire(timeout=30), "the service does not answer"

    def join(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(timeout=30)

    def _redeem(self, node: ServerProcess, users: list[str]) -> None:
        clients = [(user, node.client("viewer", user=user, channel="777")) for user in users]
        while not self._is_over.is_set():
            for number, (user, client) in enumerate(clients):
                try:
                    answer = client.post("codes/redeem", json={"prize": number % 2})
                except httpx.TransportError:
                    return
                if "code" not in answer.json():
                    return
                self.received[user].append(answer.json()["code"])
                self._counted.release()


def upload_again(backend: Client, *, after_delete: bool) -> None:
    """Upload the same codes to two sets, and mark all users for both."""
    if after_delete:
        backend.delete("codes").raise_for_status()
    for index, name in enumerate(("Hats", "Caps")):
        body = {"codes": [CODES], "names": [name], "indices": [index]}
        backend.put("codes", json=body).raise_for_status()
    backend.post("codes/mark_from_list", json=MARKS).raise_for_status()


def start_put(served: ServerProcess, share: float) -> socket.socket:
    """Send an incomplete PUT that would replace a set; return its open connection."""
    body = json.dumps({"codes": [[f"NEVER-{number}" for number in range(50_000)]], "names": ["Other"]}).encode()
    authorization = served.client("backend").headers["Authorization"]
    head = f"PUT /v1/e/codes HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n"
    connection = served.connect()
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[: int(len(body) * share)])
    return connection


def check_codes_after_kills(data: str, size: int, kill: Callable[[int, Nodes], None]) -> None:
    """Start `size` nodes on `data`, redeem, and kill something, many times. Then account for each code."""
    received: dict[str, list[str]] = {user: [] for user in USERS}
    for number in range(ROUNDS):
        with ExitStack() as stack:
            nodes = [stack.enter_context(server_process("--data", data)) for _ in range(size)]
            upload_again(nodes[0].client("backend"), after_delete=number % 3 == 2)
            redeemers = Redeemers(nodes)
            with start_put(nodes[-1], RANDOM.random()):
                redeemers.wait_for(RANDOM.randrange(1, 60))
                kill(number, nodes)
                redeemers.join()
        for user, codes in redeemers.received.items():
            received[user] += codes

    with server_process("--data", data) as served:
        clients = {user: served.client("viewer", user=user, channel="777") for user in USERS}
        held = {
            user: [code for codes in client.get("codes/redeemed").json()["redeemed"] for code in codes]
            for user, client in clients.items()
        }
        names = served.client("backend").get("codes").json()["names"]
        upload_again(served.client("backend"), after_delete=True)
        next_codes = [clients[USERS[0]].post("codes/redeem", json={"prize": prize}).json()["code"] for prize in (0, 1)]

    everything = [code for codes in held.values() for code in codes]
    assert {} == {user: codes for user, codes in received.items() if not set(codes) <= set(held[user])}
    assert len(everything) == len(set(everything))
    # The codes in hand are a prefix of the list, so none is lost, and the next codes continue it.
    assert CODES[: len(everything)] == sorted(everything)
    assert CODES[len(everything) : len(everything) + 2] == next_codes
    assert ["Hats", "Caps"] == names


def test_a_killed_service_hands_out_each_code_once_and_loses_none(tmp_path: Path):
    check_codes_after_kills(f"sqlite:///{tmp_path}/codes.db", 1, lambda _, nodes: nodes[0].process.kill())


@pytest.mark.parametrize("size", [1, pytest.param(2, marks=pytest.mark.long)], ids=["one node", "two nodes"])
def test_a_killed_redis_or_node_hands_out_each_code_once_and_loses_none(tmp_path: Path, size: int):
    with RedisServer(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as redis:

        def kill(number: int, nodes: Nodes) -> None:
            if number % 2 == 0:
                redis.kill()
            if number % 4 != 0:
                nodes[-1].process.kill()
            if number % 2 == 0:
                redis.start()

        check_codes_after_kills(redis.url(), size, kill)
