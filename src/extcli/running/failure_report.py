"""What a failed run leaves behind: the service's log, its metrics, its data and its journal."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from extcli.running.log import Log

_TIMEOUT = 30.0
_FILES = {"metrics.txt": "/_emulator/metrics", "snapshot.json": "/_emulator/snapshot"}
"""Files, and where the service has their content. A path that does not answer 200 is left out."""

_PROBE = {"x-request-id": "probe-report"}
"""The journal does not list requests with such an id."""


class FailureReport:
    """A directory, which is created when something is written."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def fetch(self, url: str) -> None:
        """Write what the running service at this URL knows. Raises `OSError` if a file cannot be written."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for name, path in _FILES.items():
            _fetch(f"{url}{path}", self.directory / name)
        _write_journal(url, self.directory)

    def write_log(self, log: Log) -> None:
        """Write the service's log. Raises `OSError`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        log.copy_to(self.directory / "service.log")


def _write_journal(url: str, directory: Path) -> None:
    """Write the journal as JSON lines and as an HTTP Archive, if the service keeps one. Raises `OSError`."""
    import json

    from extcli.journal.har import har_lines

    file, archive = directory / "journal.jsonl", directory / "journal.har"
    archive.unlink(missing_ok=True)
    _fetch(f"{url}/_emulator/journal/stream?since=0&timeout=0", file)
    if not file.exists():
        return
    lines = [line for line in file.read_text().splitlines() if not line.startswith('{"mark"')]
    entries = (json.loads(line) for line in lines if line.startswith('{"number"'))
    archive.write_text("".join(f"{line}\n" for line in har_lines(entries, url)))
    file.write_text("".join(f"{line}\n" for line in lines))


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
        connection.request("GET", f"{address.path}?{address.query}", headers=_PROBE)
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
