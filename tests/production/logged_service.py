"""A service whose whole output is kept, however much it is."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from support import preloaded
from support.process import ServerProcess, wait_until

VERBOSE = ("--log-level", "debug", "--log-requests")


class LoggedService(ServerProcess):
    """A service whose log is read while it runs."""

    def __init__(self, process: preloaded.Process) -> None:
        super().__init__(process)
        self._log: list[str] = []
        self._reader = Thread(target=lambda: [self._log.append(line) for line in process.stderr])
        self._reader.start()

    def output(self) -> str:
        """Stop the service, and return its whole output."""
        assert 0 == self.stop(signal.SIGTERM)
        self._reader.join()
        return "".join((self.first_line, *self.process.stdout, *self._log))

    def wait_for(self, text: str) -> None:
        """Wait until the log contains the text."""
        wait_until(lambda: any(text in line for line in self._log))


@contextmanager
def running(folder: Path, *args: str, **environment: str) -> Iterator[LoggedService]:
    """Run a service that logs all it can. It must leave no file behind."""
    (cwd := folder / "cwd").mkdir()
    with preloaded.start(["serve", "--port", "0", *VERBOSE, *args], {**os.environ, **environment}, cwd) as process:
        try:
            yield LoggedService(process)
            assert [] == list(cwd.iterdir())
        finally:
            process.kill()
