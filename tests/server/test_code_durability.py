"""If the service is killed, no reward code is handed out twice and none is lost."""

from __future__ import annotations

import json
import os
import random
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from support.process import ServerProcess, server_process
from support.service import Client

ROUNDS = int(os.environ.get("ROUNDS", "4"))
"""How often to kill the service."""
CODES = [f"CODE-{number:05}" for number in range(20_000)]
USERS = [str(number) for number in range(40)]
RANDOM = random.Random(8)


class Redeemers:
    """Threads that redeem without pause, and the codes each user received."""

    def __init__(self, served: ServerProcess) -> None:
        self.received: dict[str, list[str]] = {user: [] for user in USERS}
        self._counted = threading.Semaphore(0)
        groups = [USERS[start::4] for start in range(4)]
        self._threads = [threading.Thread(target=self._redeem, args=(served, group)) for group in groups]
        for thread in self._threads:
            thread.start()

    def wait_for(self, codes: int) -> None:
        for _ in range(codes):
            assert self._counted.acquire(timeout=10), "the service does not answer"

    def join(self) -> None:
        for thread in self._threads:
            thread.join(timeout=10)

    def _redeem(self, served: ServerProcess, users: list[str]) -> None:
        clients = [(user, served.client("viewer", user=user, channel="777")) for user in users]
        while True:
            for user, client in clients:
                try:
                    answer = client.post("codes/redeem", json={"prize": 0})
                except httpx.TransportError:
                    return
                if "code" not in answer.json():
                    return
                self.received[user].append(answer.json()["code"])
                self._counted.release()


def start_put(served: ServerProcess, backend: Client, share: float) -> socket.socket:
    """Send an incomplete PUT that would replace the set; return its open connection."""
    body = json.dumps({"codes": [[f"NEVER-{number}" for number in range(50_000)]], "names": ["Other"]}).encode()
    head = f"PUT /v1/e/codes HTTP/1.1\r\nHost: x\r\nAuthorization: {backend.headers['Authorization']}\r\n"
    address = urlsplit(served.url)
    connection = socket.create_connection((address.hostname or "", address.port or 0))
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[: int(len(body) * share)])
    return connection


def test_a_killed_service_hands_out_each_code_once_and_loses_none(tmp_path: Path):
    data = f"sqlite:///{tmp_path}/codes.db"
    received: dict[str, list[str]] = {user: [] for user in USERS}
    with server_process("--data", data) as served:
        backend = served.client("backend")
        backend.put("codes", json={"codes": [CODES], "names": ["Hats"]}).raise_for_status()
        marks = {"prizes": [0] * 1_000, "prize_limits": [1_000], "users": USERS}
        backend.post("codes/mark_from_list", json=marks).raise_for_status()

    for _ in range(ROUNDS):
        with server_process("--data", data) as served:
            redeemers = Redeemers(served)
            with start_put(served, served.client("backend"), RANDOM.random()):
                redeemers.wait_for(RANDOM.randrange(1, 60))
                served.process.kill()
                redeemers.join()
        for user, codes in redeemers.received.items():
            received[user] += codes

    with server_process("--data", data) as served:
        clients = {user: served.client("viewer", user=user, channel="777") for user in USERS}
        held = {user: client.get("codes/redeemed").json()["redeemed"][0] for user, client in clients.items()}
        names = served.client("backend").get("codes").json()["names"]
        next_code = clients[USERS[0]].post("codes/redeem", json={"prize": 0}).json()["code"]
        distributed = served.client("backend").delete("codes").json()["distributed"]

    everything = [code for codes in held.values() for code in codes]
    assert {} == {user: codes for user, codes in received.items() if not set(codes) <= set(held[user])}
    assert len(everything) == len(set(everything))
    # The codes in hand are a prefix of the list, so none is lost, and the next code continues it.
    assert CODES[: len(everything)] == sorted(everything)
    assert CODES[len(everything)] == next_code
    assert [len(everything) + 1] == distributed
    assert ["Hats"] == names
