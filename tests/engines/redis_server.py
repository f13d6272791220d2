"""A Redis server that only one test or test module uses."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from typing import Any, Self

import pytest
import redis
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from emulator.storage.redis.keys import namespace_key

SECONDS = 10.0
_DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "deploying.md"
ADVISED_USERS = re.findall(r"^ACL SETUSER (?!default).*$", _DOCUMENT.read_text(), re.MULTILINE)
"""The commands that add them."""


class RedisServer:
    """A server on a free port. Unless `options`, command-line arguments, say otherwise, it saves nothing to disk."""

    def __init__(self, folder: Path, *options: str) -> None:
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if not program:
            pytest.skip("needs redis-server or valkey-server")
        self._program = program
        self._folder = folder
        self._options = options
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()

    def url(self, database: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{database}"

    def start(self, *more: str) -> None:
        """Start it, with `more` options until it stops, and wait until it answers."""
        self.launch(*more)
        try:
            self.wait()
        except BaseException:
            self.kill()
            raise

    def launch(self, *more: str) -> None:
        """Start it without waiting."""
        options = {"bind": "127.0.0.1", "port": str(self.port), "save": "", "appendonly": "no", "databases": "1024"}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        with open(self._folder / "redis.log", "ab") as log:
            self._process = subprocess.Popen(
                [self._program, *words, "--dir", os.fspath(self._folder), *self._options, *more], stdout=log, stderr=log
            )

    def wait(self) -> None:
        assert self._process is not None
        until = time.monotonic() + SECONDS
        while not self.answers():
            assert self._process.poll() is None, (self._folder / "redis.log").read_text()
            assert time.monotonic() < until, "the Redis server did not start"
            time.sleep(0.02)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Suspend it: it keeps its connections and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as wire:
                wire.sendall(b"PING\r\n")
                return wire.recv(16).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


def add_users(server: RedisServer) -> None:
    """Add the users that docs/deploying.md advises."""
    with redis.Redis(port=server.port) as database:
        for line in ADVISED_USERS:
            database.execute_command(*line.split())


def url_of_service(server: RedisServer, database: int = 0) -> str:
    """Return the URL with the advised user of the service."""
    return f"redis://extcli:SERVICE-PASSWORD@127.0.0.1:{server.port}/{database}"


def free_port() -> int:
    """Return a free port below those of outgoing connections, one of which could take it before a server starts."""
    while True:
        port = SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as wire, suppress(OSError):
            wire.bind(("127.0.0.1", port))
            return port


FAILED_AFTER, FAILED_AFTER_LONG = 1_000, 60_000
"""Milliseconds without a response after which the other nodes replace one, and where none is to fail.

On a busy machine a node may be silent for seconds, and the others would end all operations meanwhile.
"""
_SECONDS = 20.0


class ClusterNode(RedisServer):
    def __init__(self, folder: Path, failed_after: int) -> None:
        folder.mkdir(parents=True)
        self.bus_port = free_port()
        values = {"enabled": "yes", "port": str(self.bus_port), "node-timeout": str(failed_after)}
        super().__init__(folder, *(word for name, value in values.items() for word in (f"--cluster-{name}", value)))

    def run(self, *command: Any) -> Any:
        with redis.Redis(port=self.port) as database:
            database.response_callbacks.clear()
            return database.execute_command(*command)

    def is_copy(self) -> bool:
        """Whether it is a replica that has all data of its primary."""
        return b"master_link_status:up" in self.run("INFO", "replication")

    def id(self) -> str:
        return str(self.run("CLUSTER", "MYID").decode())


class RedisCluster:
    """Three nodes that share the slots equally, and one more, which copies the node that has the namespace `copied`."""

    def __init__(self, folder: Path, *, copied: str | None = None) -> None:
        failed_after = FAILED_AFTER if copied else FAILED_AFTER_LONG
        self.primaries = [ClusterNode(folder / f"primary{number}", failed_after) for number in range(3)]
        self._copied = copied
        self.replicas = [ClusterNode(folder / "replica", failed_after)] if copied else []
        self.nodes = [*self.primaries, *self.replicas]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for node in self.nodes:
                stack.enter_context(node)
            self._join()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def url(self) -> str:
        return self.primaries[0].url()

    def owner(self, namespace: str) -> ClusterNode:
        """Return the node that has the namespace, according to one that answers."""
        slot = key_slot(namespace_key(namespace))
        running = next(node for node in self.nodes if node.answers())
        for first, last, primary, *_ in running.run("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == primary[1])
        raise AssertionError(f"no node has slot {slot}")

    def other_primary(self, namespace: str) -> ClusterNode:
        owner = self.owner(namespace)
        return next(node for node in self.primaries if node is not owner)

    @contextmanager
    def moving(self, namespace: str, to: ClusterNode) -> Iterator[None]:
        """Move the slot of a namespace as `redis-cli --cluster reshard` does; its keys move at the end of the block."""
        owner, slot = self.owner(namespace), key_slot(namespace_key(namespace))
        to.run("CLUSTER", "SETSLOT", slot, "IMPORTING", owner.id())
        owner.run("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id())
        yield
        keys = owner.run("CLUSTER", "GETKEYSINSLOT", slot, 1_000)
        owner.run("MIGRATE", "127.0.0.1", to.port, "", 0, 10_000, "KEYS", *keys)
        for node in (to, owner, *self.primaries):
            node.run("CLUSTER", "SETSLOT", slot, "NODE", to.id())

    def _join(self) -> None:
        first, *others = self.nodes
        share = REDIS_CLUSTER_HASH_SLOTS // len(self.primaries) + 1
        for number, node in enumerate(self.nodes, 1):
            node.run("CLUSTER", "SET-CONFIG-EPOCH", number)
        for number, node in enumerate(self.primaries):
            last = min((number + 1) * share, REDIS_CLUSTER_HASH_SLOTS) - 1
            node.run("CLUSTER", "ADDSLOTSRANGE", number * share, last)
        for node in others:
            node.run("CLUSTER", "MEET", "127.0.0.1", first.port, first.bus_port)
        wait_until(lambda: all(self._knows_all(node) for node in self.nodes))
        for node in self.replicas:
            node.run("CLUSTER", "REPLICATE", self.owner(self._copied).id())
        wait_until(lambda: all(b"cluster_state:ok" in node.run("CLUSTER", "INFO") for node in self.nodes))
        wait_until(lambda: all(node.is_copy() for node in self.replicas))

    def _knows_all(self, node: ClusterNode) -> bool:
        return f"cluster_known_nodes:{len(self.nodes)}".encode() in node.run("CLUSTER", "INFO")


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < until, f"the cluster took more than {_SECONDS} s"
        time.sleep(0.02)
