"""A disk of a few megabytes for one service alone, which a test can fill and empty while the service runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.process import ServerProcess

_READER = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("BEGIN")
file.execute("SELECT next FROM numbers").fetchone()
print("reading", flush=True)
sys.stdin.read()
"""


class SmallDisk:
    """A file system in memory, mounted where only the service sees it: in a mount namespace of its own."""

    def __init__(self, at: Path, size: str, options: str = "rw") -> None:
        refused = subprocess.run(["unshare", "-rm", "true"], capture_output=True, text=True, check=False)
        if refused.returncode:
            pytest.skip(f"no mount namespaces for users here: {refused.stderr.strip()}")
        at.mkdir()
        self._at = at
        mount = f'mount -t tmpfs -o size={size} none "$0" && mount -o remount,{options} "$0" && exec "$@"'
        self.under = ("unshare", "-rm", "sh", "-c", mount, str(at))
        """What starts a service that has it."""

    @property
    def data(self) -> str:
        """A file on it."""
        return f"sqlite://{self._at}/data.db"

    @contextmanager
    def reading(self, served: ServerProcess) -> Iterator[None]:
        """Have another process hold on to the data as they are now."""
        enter = ("nsenter", "--preserve-credentials", "-U", "-m", "-t", str(served.process.pid))
        command = [*enter, sys.executable, "-c", _READER, f"{self._at}/data.db"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
            try:
                assert reader.stdout is not None
                assert reader.stdout.readline() == "reading\n"
                yield
            finally:
                reader.kill()

    def size_of_log(self, served: ServerProcess) -> int:
        """Bytes."""
        return (self._root(served) / "data.db-wal").stat().st_size

    def fill(self, served: ServerProcess, size: int = 1 << 40) -> None:
        """Take so many bytes, or all that are free."""
        with self._ballast(served).open("wb", buffering=0) as ballast, suppress(OSError):
            while ballast.tell() < size:
                ballast.write(b"x" * 4096)

    def empty(self, served: ServerProcess) -> None:
        """Give back what `fill` took."""
        self._ballast(served).unlink()

    def _ballast(self, served: ServerProcess) -> Path:
        return self._root(served) / "ballast"

    def _root(self, served: ServerProcess) -> Path:
        return Path(f"/proc/{served.process.pid}/root{self._at}")
