"""The results of an `exec` run: production's verdicts, and after a failure the log, metrics, data and journal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO

from emulator.contract.parity import UNKNOWN
from extcli import bounded_json
from extcli.config.run_variables import NAMESPACES
from extcli.errors import CliError, ExitCode, UsageError
from extcli.output.printer import write_stderr
from extcli.output.sanitize import visible
from extcli.parity import COUNTED_ONCE, SHAPE, Selection, lines_of
from extcli.reading.shapes import SHAPE_ERRORS, problem_of

if TYPE_CHECKING:
    from extcli.api.http import Http

_TAIL = 1 << 14
"""Bytes of the log that its last lines are taken from."""


class Log:
    """Keeps what a service writes to standard error in a file without a name, and shows it unless it is quiet."""

    def __init__(self, directory: str, *, shown: bool) -> None:
        self.is_shown = shown
        self._file = TemporaryFile(buffering=0, dir=directory)  # noqa: SIM115  (open as long as the process)

    def write(self, data: bytes) -> None:
        """Append text to the log."""
        with suppress(OSError):  # no space, or the reader of standard error has ended
            self._file.write(data)
        if self.is_shown:
            _print(data)

    def show(self) -> None:
        """Print the log to standard error, unless it was already printed."""
        if not self.is_shown:
            self._file.seek(0)
            while data := self._file.read(1 << 16):
                _print(data)

    def copy_to(self, target: BinaryIO) -> None:
        """Write the log to a file. Raises `OSError`."""
        self._file.seek(0)
        shutil.copyfileobj(self._file, target)

    def tail(self, count: int) -> list[str]:
        """Return the last lines, at most `count`."""
        end = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(0, end - _TAIL))
        text = self._file.read().decode(errors="replace")
        self._file.seek(0, os.SEEK_END)
        return text.splitlines()[-count:]


def _print(data: bytes) -> None:
    with suppress(OSError):
        while data:
            data = data[os.write(2, data) :]


_TIMEOUT = 30.0
_JOURNAL = "/_emulator/journal/stream?since=0&timeout=0"
_CONTENTS = ("snapshot.json", "journal.jsonl", "journal.har")
_OWNER_ONLY = 0o700


class FailureReport:
    """A directory that only its owner can read. It is created when the first file is written."""

    def __init__(self, directory: Path) -> None:
        """Raises `UsageError` if a file has this name."""
        if directory.exists() and not directory.is_dir():
            raise UsageError(f"--on-failure {directory} is not a directory")
        self.directory = directory

    def fetch(self, url: str) -> None:
        """Write metrics, data and journal of the service at this URL. Raises `OSError` if a file cannot be written.

        Each namespace that the command has not dropped has a folder of its own below `NAMESPACES`.
        """
        _create_private(self.directory)
        _fetch(url, "/_emulator/metrics", self.directory / "metrics.txt")
        _write_contents(url, self.directory)
        folder = self.directory / NAMESPACES
        names = _namespaces_of(url)
        for old in folder.glob("*"):
            _remove_contents(old)
        for name in names:
            _create_private(folder / name)
            _write_contents(f"{url}/_ns/{name}", folder / name)

    def write_log(self, log: Log) -> None:
        """Write the service's log. Raises `OSError`."""
        _create_private(self.directory)
        with _create_empty(self.directory / "service.log") as file:
            log.copy_to(file)


def _create_private(directory: Path) -> None:
    """Create a directory, with mode 0700; one that exists keeps its mode."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=_OWNER_ONLY, exist_ok=True)


def _create_empty(file: Path) -> BinaryIO:
    """Replace a file by an empty one with mode 0600, and open it. Raises `OSError`."""
    file.unlink(missing_ok=True)
    return os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")


@contextmanager
def _connection(url: str) -> Iterator[Http]:
    from extcli.api.http import Http

    http = Http(url, timeout=_TIMEOUT, trace=None)
    try:
        yield http
    finally:
        http.close()


def _namespaces_of(url: str) -> list[str]:
    """Return the names of the namespaces in use; none if the service does not list them."""
    with suppress(CliError, *SHAPE_ERRORS), _connection(url) as http:
        document = bounded_json.decoded(http.send("GET", "/_ns").content)
        return [str(name) for name in document["namespaces"]]
    return []


def _remove_contents(directory: Path) -> None:
    """Remove what an earlier run wrote about a namespace, and the folder if nothing else is in it."""
    with suppress(OSError):
        for name in _CONTENTS:
            (directory / name).unlink(missing_ok=True)
        directory.rmdir()


def _write_contents(url: str, directory: Path) -> None:
    """Write the data of one namespace, and its journal as JSON lines and as an HTTP Archive, if the service keeps one.

    Raises `OSError`.
    """
    from extcli.journal.views import har_lines

    data, file, archive = (directory / name for name in _CONTENTS)
    _fetch(url, "/_emulator/snapshot", data)
    stream = directory / "journal.stream"
    archive.unlink(missing_ok=True)
    file.unlink(missing_ok=True)
    _fetch(url, _JOURNAL, stream)
    if not stream.exists():
        return
    try:
        with stream.open("rb") as received, _create_empty(file) as lines:
            lines.writelines(line for line in received if not line.startswith(b'{"mark"'))
        with file.open("rb") as lines, _create_empty(archive) as target:
            entries = (bounded_json.decoded(line) for line in lines if line.startswith(b'{"number"'))
            target.writelines(f"{line}\n".encode() for line in har_lines(entries, url))
    finally:
        stream.unlink()


def _fetch(url: str, path: str, file: Path) -> None:
    """Write a response with status 200 to a file. Otherwise remove the file of an earlier run.

    Raises `OSError` if the file cannot be written, and leaves no part of it.
    """
    from extcli.api.http import probe_id

    is_complete, extra = False, {"x-request-id": probe_id()}
    try:
        with (
            _create_empty(file) as target,
            _connection(url) as http,
            http.stream("GET", path, limit=None, extra=extra) as response,
        ):
            target.writelines(response.iter_bytes())
        is_complete = response.status_code == 200
    except CliError:
        pass
    finally:
        if not is_complete:
            file.unlink(missing_ok=True)


PARITY = "parity"
_PATH = "/_emulator/parity?of=service"


@dataclass(frozen=True, slots=True)
class FailOn:
    """Decides by production's verdicts whether a run fails."""

    text: str
    """The option as given."""
    selection: Selection

    @classmethod
    def parse(cls, text: str, *, production: bool) -> FailOn:
        """Read `parity`, `parity=RULE,…` or `parity=!RULE,…`. Raises `UsageError`."""
        name, _, rules = text.partition("=")
        if name != PARITY:
            raise UsageError(f"--fail-on {text[:40]!r}: must be {PARITY} or {PARITY}=RULE,…")
        if production:
            raise UsageError("--fail-on: --production gives no verdicts, because it is production")
        return cls(text, Selection(rules))

    def check(self, url: str) -> int:
        """Report what production would have done differently, and return the exit code. Raises `CliError`."""
        document = _read(url)
        found = self.selection.failures(document)
        if not found:
            unknown = [each for each in document["rules"] if each["verdict"] == UNKNOWN]
            if count := sum(each["count"] for each in unknown):
                least = "at least " if any(each["rule"] == COUNTED_ONCE for each in unknown) else ""
                requests = f"{least}{count} request{'s' if count > 1 else ''}"
                note = f"no verdict on {requests}: the service knows no secret to check their signatures with"
                write_stderr([f"extcli exec: {note}; add --extensions FILE"])
            return ExitCode.DONE
        head = f"extcli exec: production would have acted differently (--fail-on {self.text}):"
        write_stderr([head, *(f"  {visible(line)}" for line in lines_of(found))])
        return ExitCode.EXPECTATION_NOT_MET


def _read(url: str) -> Mapping[str, Any]:
    """Return the counts of a service. Raises `CliError` if it does not answer."""
    try:
        with _connection(url) as http:
            response = http.send("GET", _PATH)
        found = bounded_json.decoded(response.content) if response.status_code == 200 else None
        problem = str(response.status_code) if found is None else problem_of(found, SHAPE)
    except (CliError, ValueError) as error:
        found, problem = None, str(error)
    if found is None or problem:
        raise CliError(f"the service does not say what production would have done: {problem}")
    return dict(found)
