"""What a failed run leaves behind: the service's log, its metrics and its data."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from extcli.running.log import Log

_TIMEOUT = 30.0
_FILES = {"metrics.txt": "/_emulator/metrics", "snapshot.json": "/_emulator/snapshot"}
"""Files, and where the service has their content. A path that does not answer 200 is left out."""


class FailureReport:
    """A directory, which is created when something is written."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def fetch(self, url: str) -> None:
        """Write what the running service at this URL knows. Raises `OSError` if a file cannot be written."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for name, path in _FILES.items():
            _fetch(f"{url}{path}", self.directory / name)

    def write_log(self, log: Log) -> None:
        """Write the service's log. Raises `OSError`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        log.copy_to(self.directory / "service.log")


def _fetch(url: str, file: Path) -> None:
    """Write the answer to a file, unless there is none or it is not 200. Removes what an earlier run has written.

    Raises `OSError` if the file cannot be written, and leaves no part of it.
    """
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    file.unlink(missing_ok=True)
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=_TIMEOUT)
    try:
        connection.request("GET", address.path)
        answer = connection.getresponse()
        if answer.status == 200:
            with file.open("wb") as target:
                shutil.copyfileobj(answer, target)
    except (HTTPException, OSError) as error:
        with suppress(OSError):  # incomplete
            file.unlink(missing_ok=True)
        if not isinstance(error, HTTPException | ConnectionError | TimeoutError):
            raise
    finally:
        connection.close()
