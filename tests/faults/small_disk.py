"""A disk of a few megabytes for one service, which a test can fill and empty while the service runs."""

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
    """A tmpfs in a mount namespace that only the service sees."""

    def __init__(self, at: Path, size: str, options: str = "rw") -> None:
        probe = subprocess.run(["unshare", "-rm", "true"], capture_output=True, text=True, check=False)
        if probe.returncode:
            pytest.skip(f"mount namespaces are not available: {probe.stderr.strip()}")
        at.mkdir()
        self._at = at
        mount = f'mount -t tmpfs -o size={size} none "$0" && mount -o remount,{options} "$0" && exec "$@"'
        self.under = ("unshare", "-rm", "sh", "-c", mount, str(at))
        """The command that starts a service with this disk."""

    @property
    def data(self) -> str:
        """The URL of a file on the disk."""
        return f"sqlite://{self._at}/data.db"

    @contextmanager
    def reading(self, served: ServerProcess) -> Iterator[None]:
        """Hold a read transaction in another process."""
        enter = ("nsenter", "--preserve-credentials", "-U", "-m", "-t", str(served.process.pid))
        command = [*enter, sys.executable, "-c", _READER, f"{self._at}/data.db"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
            try:
                assert reader.stdout is not None
                assert reader.stdout.readline() == "reading\n"
                yield
            finally:
                reader.kill()

    def wal_size(self, served: ServerProcess) -> int:
        """Return the size of the WAL in bytes."""
        return (self._root(served) / "data.db-wal").stat().st_size

    def fill(self, served: ServerProcess, size: int = 1 << 40) -> None:
        """Use up `size` bytes, or all free space."""
        with self._ballast(served).open("wb", buffering=0) as ballast, suppress(OSError):
            while ballast.tell() < size:
                ballast.write(b"x" * 4096)

    def empty(self, served: ServerProcess) -> None:
        """Free what `fill` used."""
        self._ballast(served).unlink()

    def _ballast(self, served: ServerProcess) -> Path:
        return self._root(served) / "ballast"

    def _root(self, served: ServerProcess) -> Path:
        return Path(f"/proc/{served.process.pid}/root{self._at}")
