"""A disk of a few megabytes for one service alone, which a test can fill and empty while the service runs."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from serving import Served


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

    def fill(self, served: Served) -> None:
        """Leave no byte free."""
        with self._ballast(served).open("wb", buffering=0) as ballast, suppress(OSError):
            while True:
                ballast.write(b"x" * 4096)

    def empty(self, served: Served) -> None:
        """Give back what `fill` took."""
        self._ballast(served).unlink()

    def _ballast(self, served: Served) -> Path:
        return Path(f"/proc/{served.process.pid}/root{self._at}/ballast")
