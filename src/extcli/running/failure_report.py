"""What a failed run leaves behind: the service's log, its metrics, its data and its journal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from extcli import bounded_json
from extcli.api import local_http
from extcli.running.log import Log

_TIMEOUT = 30.0
_FILES = {"metrics.txt": "/_emulator/metrics", "snapshot.json": "/_emulator/snapshot"}
"""Files, and where the service has their content. A path that does not answer 200 is left out."""
_JOURNAL = "/_emulator/journal/stream?since=0&timeout=0"
_OWNER_ONLY = 0o700


class FailureReport:
    """A directory for the owner alone, which is created when something is written. So are its files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def fetch(self, url: str) -> None:
        """Write what the running service at this URL knows. Raises `OSError` if a file cannot be written."""
        self._prepare()
        for name, path in _FILES.items():
            _fetch(url, path, self.directory / name)
        _write_journal(url, self.directory)

    def write_log(self, log: Log) -> None:
        """Write the service's log. Raises `OSError`."""
        self._prepare()
        with _created(self.directory / "service.log") as file:
            log.copy_to(file)

    def _prepare(self) -> None:
        """Create the directory, with mode 0700; one that exists keeps its mode."""
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        self.directory.mkdir(mode=_OWNER_ONLY, exist_ok=True)


def _created(file: Path) -> BinaryIO:
    """Replace a file by an empty one with mode 0600, and open it. Raises `OSError`."""
    file.unlink(missing_ok=True)
    return os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")


def _write_journal(url: str, directory: Path) -> None:
    """Write the journal as JSON lines and as an HTTP Archive, if the service keeps one. Raises `OSError`."""
    from extcli.journal.har import har_lines

    file, archive = directory / "journal.jsonl", directory / "journal.har"
    stream = directory / "journal.stream"
    archive.unlink(missing_ok=True)
    file.unlink(missing_ok=True)
    _fetch(url, _JOURNAL, stream)
    if not stream.exists():
        return
    try:
        with stream.open("rb") as received, _created(file) as lines:
            lines.writelines(line for line in received if not line.startswith(b'{"mark"'))
        with file.open("rb") as lines, _created(archive) as target:
            target.writelines(f"{line}\n".encode() for line in har_lines(_entries(lines), url))
    finally:
        stream.unlink()


def _entries(lines: BinaryIO) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith(b'{"number"'):
            yield bounded_json.decoded(line)


def _fetch(url: str, path: str, file: Path) -> None:
    """Write the answer to a file, unless there is none or it is not 200. Removes what an earlier run has written.

    Raises `OSError` if the file cannot be written, and leaves no part of it.
    """
    is_complete = False
    try:
        with _created(file) as target:
            answer = local_http.get(url, path, seconds=_TIMEOUT, largest=None, write=target.write)
        is_complete = answer.status == 200
    except local_http.Failed:
        pass
    finally:
        if not is_complete:
            file.unlink(missing_ok=True)
