"""The service of a test run: a process of its own, or one that already runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from extcli import clock
from extcli.api.http import Http
from extcli.config import secret_lookup
from extcli.config.settings import DEFAULT_CLIENT_ID
from extcli.errors import CliError, UsageError
from extcli.testing.calls import TIMEOUT

_STOP_SECONDS = 10.0


class NotUsable(Exception):
    """There is no service that tests can use. The message says why, and what to do."""


@dataclass
class Server:
    """A running service."""

    url: str
    """Its base URL, without a namespace."""
    http: Http = field(repr=False)
    client_id: str = DEFAULT_CLIENT_ID
    secret: bytes | None = field(default=None, repr=False)
    """The secret of the extension, if the environment of this run names one; pytest shows no field of it."""
    log: Path | None = None
    """The file with its log; `None` if this run did not start it."""
    process: subprocess.Popen[str] | None = field(default=None, repr=False)
    stays: bool = False
    """Whether the process runs on after the tests."""

    def log_of(self, namespace: str) -> str:
        """Return the log lines of a namespace, or why there are none."""
        if self.log is None:
            return f"the log of {self.url} has its lines: this run did not start that service"
        try:
            # A later request, so that the lines of earlier ones are written.
            self.http.send("GET", "/_emulator/live")
        except CliError as error:
            return f"{error.what}; its log ends with:\n{_tail(self.log)}"
        return "\n".join(lines_of(namespace, self.log.read_text(errors="replace"))) or "no line"


def lines_of(namespace: str, log: str) -> Iterator[str]:
    """Yield the lines of a text log that name the namespace, with their tracebacks."""
    wanted = False
    for line in log.splitlines():
        if line[:4].isdigit() and line[4:5] == "-":  # a traceback's lines have no date
            wanted = f"[{namespace} " in line or f"[{namespace}]" in line
        if wanted:
            yield line


@contextmanager
def started(args: Sequence[str], log: Path, *, may_stay: bool = False) -> Iterator[Server]:
    """Run `extcli serve` with these options until the context ends, on a free port unless they name one.

    The service also stops if this process is killed, unless it `may_stay` and so outlive it. Variables `EXTCLI_…` of
    the caller do not count. Raises `NotUsable` if it does not start.
    """
    reader, lifeline = (None, None) if may_stay or os.name != "posix" else os.pipe()
    process = _process(args, log, reader)
    if reader is not None:
        os.close(reader)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("listening on ").strip()
        if not url:
            raise NotUsable(f"extcli serve did not start:\n{_tail(log)}")
        server = Server(url, _connection(url), log=log, process=process)
        _wait_until_ready(server.http, log)
        yield server
        server.http.close()
    except BaseException:
        _stop(process)
        raise
    finally:
        if lifeline is not None:
            os.close(lifeline)
    if not server.stays:
        _stop(process)


def _process(args: Sequence[str], log: Path, lifeline: int | None) -> subprocess.Popen[str]:
    """Start `extcli serve`. It stops when the other end of `lifeline`, a pipe, is closed."""
    command = [sys.executable, "-P", "-m", "extcli", "serve", "--port", "0", "--log-requests", *args]
    if lifeline is not None:
        command += ["--lifeline", str(lifeline)]
    with log.open("ab") as stderr:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")},
            text=True,
            start_new_session=True,  # Ctrl-C is for pytest, which then stops the service
            pass_fds=() if lifeline is None else (lifeline,),
        )


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()


@contextmanager
def running(url: str, origin: str) -> Iterator[Server]:
    """Use the service at this URL, in namespaces of its own. Raises `NotUsable` if it has none."""
    root = url.partition("/_ns/")[0].rstrip("/")
    http = _connection(root)
    try:
        answer = http.send("GET", "/_ns")
    except CliError as error:
        raise NotUsable(f"{error.what} ({origin}): {error.why or error.fix}") from None
    if answer.status_code != 200:
        raise NotUsable(f"{root} ({origin}) has no namespaces for tests: it is not a sandbox with control API")
    try:
        secret = secret_lookup.secret_of(os.environ)
    except UsageError as error:
        raise NotUsable("; ".join(filter(None, (error.what, error.why, error.fix)))) from None
    yield Server(root, http, os.environ.get("EXTCLI_CLIENT_ID") or DEFAULT_CLIENT_ID, secret)
    http.close()


def _connection(url: str) -> Http:
    return Http(url, timeout=TIMEOUT, trace=None, control_token=os.environ.get("EXTCLI_CONTROL_TOKEN"))


def _wait_until_ready(http: Http, log: Path) -> None:
    """Wait while the service answers 503. Raises `NotUsable` if it ends meanwhile, or after `TIMEOUT`."""
    deadline = clock.elapsed() + TIMEOUT
    try:
        while http.send("GET", "/_emulator/ready").status_code == 503 and clock.elapsed() < deadline:
            clock.sleep(0.02)
    except CliError as error:
        raise NotUsable(f"extcli serve stopped while it started: {error.what}\n{_tail(log)}") from None


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])
