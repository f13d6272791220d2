"""The servers of a test run, started for it or named by --extcli-url, and their part of a failed test's report."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pytest

from extcli import clock
from extcli.api.http import Http
from extcli.config import secret_lookup
from extcli.config.run_variables import NAMESPACES, ON_FAILURE, write_secret
from extcli.config.settings import DEFAULT_CHANNEL, DEFAULT_CLIENT_ID
from extcli.errors import CliError, UsageError
from extcli.reading.shapes import document_of
from extcli.testing import namespace
from extcli.testing.actor import TIMEOUT, Awaited, Blocking, control, with_note

_STOP_SECONDS = 10.0
if sys.platform == "win32":
    _OWN_GROUP = subprocess.CREATE_NEW_PROCESS_GROUP
    """Ctrl-C is for pytest, which then stops the service. Elsewhere a session of its own does that."""
else:
    _OWN_GROUP = 0


class NotUsable(Exception):
    """There is no service that tests can use. The message says why, and what to do."""


@dataclass
class Server:
    """A running service."""

    url: str
    """Its base URL, without a namespace."""
    http: Http = field(repr=False)
    client_id: str = DEFAULT_CLIENT_ID
    channel: str = DEFAULT_CHANNEL
    secret: bytes | None = field(default=None, repr=False)
    """The secret of the extension, if the environment of this run names one; pytest shows no field of it."""
    secret_file: Path | None = None
    """A file with a random secret, for programs that sign tokens; `None` if they have another."""
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
            return f"{error.what}; its log ends with:\n{_tail_of_log(self.log)}"
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

    The service also stops if this process is killed, unless it `may_stay` after it. Variables `EXTCLI_…` of the caller
    do not count. Raises `NotUsable` if it does not start.
    """
    process = _start_serve(args, log, may_stay=may_stay)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("listening on ").strip()
        if not url:
            raise NotUsable(f"extcli serve did not start:\n{_tail_of_log(log)}")
        server = Server(url, _connection(url), secret_file=_secret_file(log.parent, args), log=log, process=process)
        _wait_until_ready(server.http, log)
        yield server
        server.http.close()
    except BaseException:
        _stop(process)
        raise
    if not server.stays:
        _stop(process)


def _secret_file(folder: Path, args: Sequence[str]) -> Path | None:
    """Write a random secret, and return its file.

    None if the environment names one, or if the service has registered extensions with secrets of their own.
    """
    if os.environ.get("EXTCLI_SECRET_FILE") or any(each.startswith("--extensions") for each in args):
        return None
    write_secret(file := folder / "secret")
    return file


def _start_serve(args: Sequence[str], log: Path, *, may_stay: bool) -> subprocess.Popen[str]:
    """Start `extcli serve`. Unless it `may_stay`, it stops when this process closes its standard input, or ends."""
    command = [sys.executable, "-P", "-m", "extcli", "serve", "--port", "0", "--log-requests", *args]
    if not may_stay:
        command += ["--lifeline", "0"]
    with log.open("ab") as stderr:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if may_stay else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")},
            text=True,
            start_new_session=True,
            creationflags=_OWN_GROUP,
        )


def _stop(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    else:
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
    """Use the running service at this URL, in new namespaces. Raises `NotUsable` if it does not offer namespaces."""
    root = url.partition("/_ns/")[0].rstrip("/")
    http = _connection(root)
    try:
        response = http.send("GET", "/_ns")
    except CliError as error:
        raise NotUsable(f"{error.what} ({origin}): {error.why or error.fix}") from None
    if response.status_code != 200:
        raise NotUsable(f"{root} ({origin}) has no namespaces for tests: it is not a sandbox with control API")
    try:
        secret = secret_lookup.secret_of(os.environ)
    except UsageError as error:
        raise NotUsable("; ".join(filter(None, (error.what, error.why, error.fix)))) from None
    client_id, channel = os.environ.get("EXTCLI_CLIENT_ID"), os.environ.get("EXTCLI_CHANNEL")
    yield Server(root, http, client_id or DEFAULT_CLIENT_ID, channel or DEFAULT_CHANNEL, secret)
    http.close()


def _connection(url: str) -> Http:
    return Http(url, timeout=TIMEOUT, trace=None, control_token=os.environ.get("EXTCLI_CONTROL_TOKEN"))


def _wait_until_ready(http: Http, log: Path) -> None:
    """Wait until the service is ready. Raises `NotUsable` if it ends before, or after `TIMEOUT`."""
    deadline = clock.elapsed() + TIMEOUT
    try:
        while http.send("GET", "/_emulator/ready").status_code == 503 and clock.elapsed() < deadline:
            clock.sleep(0.02)
    except CliError as error:
        raise NotUsable(f"extcli serve stopped while it started: {error.what}\n{_tail_of_log(log)}") from None


def _tail_of_log(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


_LISTED = 5
"""Refused requests in the report of a test."""
_FAILED: pytest.StashKey[bool] = pytest.StashKey()


@dataclass
class Space:
    """A namespace of a test."""

    KEY: ClassVar[pytest.StashKey[list[Space]]] = pytest.StashKey()

    name: str
    url: str
    server: Server

    @staticmethod
    def is_kept(item: pytest.Item) -> bool:
        """Return whether the test failed and its namespaces are to stay."""
        is_wanted = item.config.getoption("--extcli-keep") or os.environ.get(ON_FAILURE)
        return item.stash.get(_FAILED, False) and bool(is_wanted)


class Reports:
    """Adds sections to the reports of failed tests. Registered when the first test uses a fixture."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the sections."""
        report = yield
        if report.failed and call.when != "teardown":
            item.stash[_FAILED] = True
            for space in item.stash.get(Space.KEY, []):
                report.sections.append((f"extcli log of {space.name}", space.server.log_of(space.name)))
                if refused := _refusals(space):
                    report.sections.append((f"extcli refused requests of {space.name}", refused))
                if Space.is_kept(item):
                    space.server.stays = bool(item.config.getoption("--extcli-keep"))
                    report.sections.append(("extcli kept", _place_of_space(space)))
        return report


def _refusals(space: Space) -> str:
    """Return the latest requests and frames that were refused or got no response, with the reason; empty if none.

    Lines are not cut: many reports are read in a CI log.
    """
    from extcli.journal.views import lines_of

    path = f"/_ns/{space.name}/_emulator/journal?status=4xx,5xx,none&limit={_LISTED}"
    try:
        response = space.server.http.send("GET", path)
    except CliError:
        return ""
    entries = document_of(response, {"entries": [dict]})["entries"] if response.status_code == 200 else []
    return lines_of(reversed(entries), sys.maxsize)


def _place_of_space(space: Space) -> str:
    if directory := os.environ.get(ON_FAILURE):
        return f"its data and journal, after the run: {os.path.join(directory, NAMESPACES, space.name)}"
    process = space.server.process
    return space.url + (f" (its service runs on: stop it with kill {process.pid})" if process else "")


_LONGEST_NAME = 40


class Factory:
    """The fixture `extcli_factory`: a test calls it to create another namespace."""

    def __init__(self, server: Server, node: pytest.Item) -> None:
        self._server = server
        self._node = node
        self.made: list[Namespace] = []

    def __call__(self, *, client_id: str | None = None, channel: str | None = None) -> Namespace:
        """Return a new namespace, prepared as the marker `extcli` says.

        Its callers act for `client_id` and `channel`.
        """
        of_server = client_id in (None, self._server.client_id)
        made = Namespace(
            self._server.http,
            self._name(),
            client_id=client_id or self._server.client_id,
            channel=channel or self._server.channel,
            secret=self._server.secret if of_server else None,
            secret_file=self._server.secret_file,
        )
        self.made.append(made)
        spaces = self._node.stash.setdefault(Space.KEY, [])
        spaces.append(Space(made.name, made.url, self._server))
        self._prepare(made)
        return made

    def _name(self) -> str:
        """Return a name that is unique among all runs, and shows the test."""
        test = re.sub(r"[^A-Za-z0-9]+", "_", self._node.name).strip("_")[:_LONGEST_NAME]
        return f"{test}-{secrets.token_hex(6)}"

    def _prepare(self, namespace: Namespace) -> None:
        wanted: dict[str, Any] = {}
        for marker in reversed(list(self._node.iter_markers("extcli"))):
            wanted |= marker.kwargs
            if marker.args or not marker.kwargs.keys() <= {"seed", "clock"}:
                raise pytest.UsageError("the marker extcli takes seed=FILE and clock=TIME, by name")
        try:
            control(self._server.http).create_namespace(namespace.name)  # a page of the test cannot
            if "clock" in wanted:  # first, so that the seed's records do not expire
                namespace.clock.set(wanted["clock"])
            if "seed" in wanted:
                namespace.seed(self._node.path.parent / wanted["seed"])
        except CliError as error:
            raise with_note(error) from None

    def drop(self) -> None:
        """Close the connections, and drop the namespaces, unless they are kept."""
        for each in self.made:
            if Space.is_kept(self._node):
                each.close()
            else:
                each.drop()


Namespace: TypeAlias = namespace.Namespace[Blocking]
"""The fixture `extcli`."""
AsyncNamespace: TypeAlias = namespace.Namespace[Awaited]
"""The fixture `extcli_async`."""
