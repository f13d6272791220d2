"""Runs `extcli serve` of both versions at the same time, on one clock."""

from __future__ import annotations

import mmap
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from twin.environment import Missing, Version

LAUNCHER = Path(__file__).with_name("launcher.py")
START = 1_893_456_000_000
"""2030-01-01, the first instant of the clock. Later than the present, because Redis expires keys by its own clock."""
STARTING, STOPPING = 120.0, 60.0
"""Seconds within which a service must start and stop."""


class Clock:
    """The wall clock of all processes of both versions: a file that they map."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "clock"
        self.path.write_bytes(START.to_bytes(8, "little"))
        self._file = open(self.path, "r+b")  # noqa: SIM115  (open as long as the run)
        self._shared = mmap.mmap(self._file.fileno(), 8)
        self.now = START

    def set(self, now: int) -> None:
        """Set the clock to an instant in Unix ms."""
        self.now = now
        self._shared[:8] = now.to_bytes(8, "little")

    def advance(self, ms: int) -> None:
        self.set(self.now + ms)


class Setup(NamedTuple):
    """An engine and an environment."""

    engine: str
    production: bool

    def __str__(self) -> str:
        return f"{self.engine} {'production' if self.production else 'sandbox'}"


SETUPS = [Setup(engine, production) for engine in ("memory", "file", "redis") for production in (False, True)]


@dataclass
class Host:
    """One service of one version."""

    version: Version
    setup: Setup
    clock: Clock
    folder: Path
    port: int
    options: tuple[str, ...] = ()
    redis: RedisServer | None = None
    starts: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def log(self) -> str:
        """Everything that the service has written to standard error."""
        return (self.folder / "log").read_text("utf-8", "replace")

    def launch(self) -> None:
        """Start the service without waiting."""
        self.starts += 1
        mode = ["--production"] if self.setup.production else []
        data = {
            "memory": "sqlite://",
            "file": f"sqlite:///{self.folder / 'data.db'}",
            "redis": self.redis.url if self.redis else "",
        }[self.setup.engine]
        with open(self.folder / "output", "ab") as output, open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [
                    *(self.version.python, "-P", LAUNCHER, self.clock.path, f"serve {self.starts}", "run", "serve"),
                    *("--port", str(self.port), "--data", data, *mode, *self.options),
                ],
                cwd=self.folder,
                env=self.version.variables() | {"HOME": str(self.folder / "home")},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
            )

    def wait(self) -> None:
        """Wait until the service answers."""
        assert self.process is not None
        until = time.monotonic() + STARTING
        while True:
            if self.process.poll() is not None or time.monotonic() > until:
                raise Missing(f"`extcli serve` of the {self.version.name} did not start:\n{self.log}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)

    def kill(self) -> None:
        """Kill the service, so that it keeps only what it has stored."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Stop the service cleanly, and return its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        if self.process is None:
            return 0
        self.process.send_signal(number)
        try:
            return self.process.wait(STOPPING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.process = None


class Pair(NamedTuple):
    """The same service of both versions."""

    old: Host
    new: Host

    def start(self) -> None:
        for host in self:
            host.launch()
        for host in self:
            host.wait()

    def kill(self) -> None:
        for host in self:
            host.kill()


class RedisServer:
    """A Redis server on a free port, which saves nothing."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if not program:
            raise Missing("redis-server is not installed; `--engine memory --engine file` compares without it")
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        words = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        with open(folder / "redis.log", "ab") as log:
            self.process = subprocess.Popen([program, *words, "--dir", str(folder)], stdout=log, stderr=log)
        until = time.monotonic() + STARTING
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                raise Missing(f"the Redis server did not start:\n{(folder / 'redis.log').read_text()}")
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as wire:
                wire.sendall(b"PING\r\n")
                return wire.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def free_port() -> int:
    """Return a free port of five digits, so that addresses of both versions have one length."""
    while True:
        with socket.socket() as wire:
            wire.bind(("127.0.0.1", 0))
            port: int = wire.getsockname()[1]
        if port > 9_999:
            return port


@contextmanager
def running(
    versions: tuple[Version, Version], setup: Setup, clock: Clock, folder: Path, *options: str
) -> Iterator[Pair]:
    """Run a service of each version until the context ends."""
    with ExitStack() as stack:
        hosts = []
        for side, version in zip(("old", "new"), versions, strict=True):
            place = folder / side
            (place / "home").mkdir(parents=True, exist_ok=True)
            redis = RedisServer(place) if setup.engine == "redis" else None
            if redis:
                stack.callback(redis.kill)
            hosts.append(Host(version, setup, clock, place, free_port(), options, redis))
            stack.callback(hosts[-1].kill)
        pair = Pair(*hosts)
        pair.start()
        yield pair
