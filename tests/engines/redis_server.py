"""A Redis server that only one test or test module uses."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

import pytest

SECONDS = 10.0


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


def free_port() -> int:
    with socket.socket() as wire:
        wire.bind(("127.0.0.1", 0))
        port: int = wire.getsockname()[1]
        return port
