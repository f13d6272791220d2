"""The service of a test run, started for it or named by --extcli-url, and a namespace of it for each test."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from extcli import clock
from extcli.api.call import CONTROL, NAMESPACES
from extcli.api.client import Service
from extcli.api.http import Http
from extcli.api.tokens import Credentials, SandboxTokens, SelfSigned
from extcli.api.websocket import WebSocketClient
from extcli.config import settings
from extcli.config.flags import Flags
from extcli.config.resolver import Resolver
from extcli.config.settings import DEFAULT_CHANNEL, DEFAULT_CLIENT_ID, DEFAULT_PIN_PATH, DEFAULT_USER, Identity
from extcli.config.urls import socket_of
from extcli.errors import CliError, UsageError
from extcli.reading import Json, document_of
from extcli.running import exec_run
from extcli.running.supervisor import readiness_problem
from extcli.seeds import apply, read
from extcli.testing.actor import Actor, Awaited, Blocking, Events, Game, ModeT, Part, json_body, operation
from extcli.testing.controls import Clock, Faults, Wait

_TIMEOUT = 90.0
"""Seconds for any response. The service holds a request for up to 60."""
_STOP_SECONDS = 10.0


def _fail(why: str) -> NoReturn:
    """End the tests that need the service. `why` also says what to do."""
    pytest.fail(why, pytrace=False)


@dataclass
class Server:
    """A running service."""

    url: str
    """Its base URL, without a namespace."""
    client_id: str = DEFAULT_CLIENT_ID
    channel: str = DEFAULT_CHANNEL
    secret: bytes | None = field(default=None, repr=False)
    """The secret of the extension, if the environment of this run names one; pytest shows no field of it."""
    secret_file: Path | None = None
    """A file with a random secret, for programs that sign tokens; `None` if they have another."""
    log: Path | None = None
    """The file with its log; `None` if this run did not start it."""
    process: subprocess.Popen[str] | None = field(default=None, repr=False)
    keeps_running: bool = False
    """Whether the process runs on after the tests."""

    def __post_init__(self) -> None:
        token = os.environ.get("EXTCLI_CONTROL_TOKEN")
        self.http = Http(self.url, timeout=_TIMEOUT, control_token=token)

    def log_of(self, namespace: str) -> str:
        """Return the log lines of a namespace, with their tracebacks, or why there are none."""
        if self.log is None:
            return f"see the log of the service at {self.url}, which this run did not start"
        try:
            # A later request, so that the lines of earlier ones are written.
            self.http.send("GET", "/_emulator/live")
        except CliError as error:
            return f"{error.what}; its log ends with:\n{_tail_of_log(self.log)}"
        lines, is_wanted = [], False
        for line in self.log.read_text(errors="replace").splitlines():
            if re.match("[0-9]{4}-", line):  # a traceback's lines have no date
                is_wanted = bool(re.search(rf"\[{namespace}[ \]]", line))
            lines += [line] if is_wanted else []
        return "\n".join(lines) or "the log has no line about this namespace"


def _tail_of_log(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


@contextmanager
def run_server(args: Sequence[str], folder: Path, *, may_stay: bool) -> Iterator[Server]:
    """Run `extcli serve` with these options until the context ends, on a free port unless they name one.

    The service also stops if this process is killed, unless it `may_stay` after it. Variables `EXTCLI_…` of the caller
    do not count. Fails if it does not start.
    """
    log = folder / "service.log"
    process = _start_serve(args, log, may_stay=may_stay)
    assert process.stdout is not None
    with ExitStack() as stack:
        stack.callback(_stop, process)
        url = process.stdout.readline().removeprefix("listening on ").strip()
        deadline = clock.elapsed() + _TIMEOUT
        while url and readiness_problem(url) and process.poll() is None and clock.elapsed() < deadline:
            clock.sleep(0.02)
        if not url or process.poll() is not None:
            _fail(f"extcli serve did not start:\n{_tail_of_log(log)}")
        server = Server(url, log=log, process=process)
        if not (os.environ.get("EXTCLI_SECRET_FILE") or any(each.startswith("--extensions") for each in args)):
            server.secret_file = folder / "secret"
            settings.write_secret(server.secret_file, settings.random_secret())
        yield server
        if server.keeps_running:
            stack.pop_all()


def _start_serve(args: Sequence[str], log: Path, *, may_stay: bool) -> subprocess.Popen[str]:
    """Start `extcli serve`. Unless it `may_stay`, it stops when this process closes its standard input, or ends."""
    lifeline = [] if may_stay else ["--lifeline", "0"]
    with log.open("ab") as stderr:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "extcli", "serve", "--port", "0", "--log-requests", *args, *lifeline],
            stdin=subprocess.DEVNULL if may_stay else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")},
            text=True,
            # Ctrl-C is for pytest, which then stops the service.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )


def _stop(process: subprocess.Popen[str]) -> None:
    with process:  # closes its output, and waits for its end
        if process.stdin:
            process.stdin.close()
        else:
            process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def find_server(url: str, origin: str) -> Server:
    """Return the running service at this URL, for new namespaces. Fails if it does not offer them."""
    root = url.partition("/_ns/")[0].rstrip("/")
    resolver = Resolver(Flags(quiet=True), os.environ)
    resolver.ignore_profiles()
    try:
        channel = resolver.channel() or DEFAULT_CHANNEL
        server = Server(root, resolver.client_id(), channel, resolver.secret())
        response = server.http.send("GET", NAMESPACES)
    except UsageError as error:
        _fail("; ".join(filter(None, (error.what, error.why, error.fix))))
    except CliError as error:
        _fail(f"{error.what} ({origin}): {error.why or error.fix}")
    if response.status_code != 200:
        _fail(f"{root} ({origin}) has no namespaces for tests: it is not a sandbox with a control API")
    return server


class SignedByServiceClock(SelfSigned):
    """Signs each token by the service's clock, which a test may move at any time."""

    def token(self) -> str:
        self.renew()
        return super().token()


class Namespace(Part[ModeT]):
    """A service of its own: data, clock and connections that no other test sees."""

    def __init__(self, server: Server, name: str, *, client_id: str | None = None, channel: str | None = None) -> None:
        """By default its callers act for the client id and the channel of the server."""
        super().__init__(awaited=False)
        self._server = server
        self.name = name
        self.client_id = client_id or server.client_id
        self.channel = channel or server.channel
        self._http = server.http.at(f"{server.url}{NAMESPACES}/{name}")
        self._control = Service(self._http, base=CONTROL)
        self._sockets: list[WebSocketClient] = []

    @property
    def url(self) -> str:
        """The base URL of the namespace, without a final slash."""
        return self._http.url

    @property
    def ws_url(self) -> str:
        """The address of the namespace's WebSocket."""
        return socket_of(self.url)

    @property
    def env(self) -> dict[str, str]:
        """The variables that point extcli, and a program started by the test, at the namespace.

        With a service that the plugin started they also name a file with a secret, unless the environment does.
        """
        place = {"EXTCLI_CLIENT_ID": self.client_id, "EXTCLI_CHANNEL": self.channel}
        secret = self._server.secret_file
        found = {"EXTCLI_URL": self.url, "EXTCLI_WS_URL": self.ws_url, **place}
        return found | ({"EXTCLI_SECRET_FILE": str(secret)} if secret else {})

    @property
    def as_async(self) -> Namespace[Awaited]:
        """The namespace for an asynchronous test: operations return awaitables."""
        twin: Any = copy(self)
        twin.awaited = True
        return cast("Namespace[Awaited]", twin)

    # Callers

    def actor(self, role: str, user: str | None = None, *, channel: str | None = None) -> Actor[ModeT]:
        """Return a caller of this role. With an empty `channel`, a backend or admin acts for all channels."""
        return Actor(self._service_as(role, user, channel), awaited=self.awaited)

    def viewer(self, user: str = DEFAULT_USER, *, channel: str | None = None) -> Actor[ModeT]:
        """Return a viewer who has shared this user id."""
        return self.actor("viewer", user, channel=channel)

    @property
    def broadcaster(self) -> Actor[ModeT]:
        """The owner of the channel."""
        return self.actor("broadcaster")

    @property
    def backend(self) -> Actor[ModeT]:
        """The extension's backend, acting for the channel."""
        return self.actor("backend")

    @operation
    def game(self, pin: str | None = None) -> Game[ModeT]:
        """Connect a game that is linked to the channel, by this PIN or by a new one."""
        if pin is None:
            pin = str(json_body(self._service_as("broadcaster").send("POST", DEFAULT_PIN_PATH))["pin"])
        return Game(self._socket(pin=pin), awaited=self.awaited)

    @operation
    def listen(self, *events: str) -> Events[ModeT]:
        """Listen to these events of the channel from now on; without names, to all of them."""
        names = events or ("*",)
        socket = self._socket(jwt=self._service_as("viewer", DEFAULT_USER).authorization.partition(" ")[2])
        for name in names:
            socket.request("subscribe", "broadcast", {"topic_id": name})
        return Events(socket, names, awaited=self.awaited)

    # The namespace itself

    @property
    def clock(self) -> Clock[ModeT]:
        """The clock of the namespace."""
        return Clock(self._control, awaited=self.awaited)

    @property
    def faults(self) -> Faults[ModeT]:
        """The faults of the namespace: failures on purpose."""
        return Faults(self._control, awaited=self.awaited)

    @property
    def wait(self) -> Wait[ModeT]:
        """Waits until a condition is met in the channel."""
        return Wait(self._control, self.client_id, self.channel, awaited=self.awaited)

    @operation
    def logs(self, /, **filters: str | int) -> list[Json]:
        """Return the latest entries of the journal, oldest first, at most 1,000: `logs(path="vote", status="4xx")`.

        Takes the filters of `GET /_emulator/journal`.
        """
        response = self._control.get("journal", **{"order": "newest", "limit": 1_000, **filters})
        return list(reversed(json_body(response)["entries"]))

    @operation
    def seed(self, path: str | Path, *, trusted: bool = False) -> Json:
        """Put the data of a seed file into the namespace: all of it, or nothing. Returns what the service counted.

        The files that it names must be in its folder, unless it is `trusted`. Raises `InvalidFile`, which names line
        and field of each error.
        """
        return apply(read(path, os.environ, trusted=trusted), self._control)

    @operation
    def reset(self) -> None:
        """Delete all data, and set the clock to real time."""
        self._control.send("POST", "reset")

    @operation
    def drop(self) -> None:
        """Delete the namespace. The fixture does it after the test."""
        self.close()
        Service(self._server.http).delete(f"{NAMESPACES}/{self.name}")

    def close(self) -> None:
        """Close the connections of games and listeners."""
        while self._sockets:
            self._sockets.pop().close()

    @operation
    def _create(self) -> None:
        """Make the namespace, which a page of the test could not."""
        Service(self._server.http).send("POST", f"{NAMESPACES}/{self.name}")

    def _service_as(self, role: str, user: str | None = None, channel: str | None = None) -> Service:
        """Return the service, called with tokens signed with the server's secret, otherwise issued by the sandbox."""
        identity, where = Identity(role, user), self.channel if channel is None else channel or None
        secret = self._server.secret if self.client_id == self._server.client_id else None
        tokens: Credentials = (
            SandboxTokens(self.client_id, identity, where, self._http, for_helper=True)
            if secret is None
            else SignedByServiceClock(secret, identity, where, self._http)
        )
        return Service(self._http, tokens, client_id=self.client_id)

    def _socket(self, **credentials: str) -> WebSocketClient:
        socket = WebSocketClient(self.ws_url, timeout=_TIMEOUT, trace=lambda _: None)  # pytest shows the log
        self._sockets.append(socket)
        socket.request("authenticate", data={"client_id": self.client_id, **credentials})
        return socket


class Factory:
    """The fixture `extcli_factory`: a test calls it to create another namespace."""

    def __init__(self, server: Server, node: pytest.Item) -> None:
        self._server = server
        self._node = node
        self._made: list[Namespace[Blocking]] = []
        self._has_failed = False

    def __call__(self, *, client_id: str | None = None, channel: str | None = None) -> Namespace[Blocking]:
        """Return a new namespace, prepared as the marker `extcli` says.

        Its callers act for `client_id` and `channel`.
        """
        # Unique among all runs, and shows the test.
        name = f"{re.sub('[^A-Za-z0-9]+', '_', self._node.name).strip('_')[:40]}-{secrets.token_hex(6)}"
        made = Namespace[Blocking](self._server, name, client_id=client_id, channel=channel)
        self._made.append(made)
        wanted: dict[str, Any] = {}
        for marker in reversed(list(self._node.iter_markers("extcli"))):
            wanted |= marker.kwargs
            if marker.args or not marker.kwargs.keys() <= {"seed", "clock"}:
                raise pytest.UsageError("the marker extcli takes only seed=FILE and clock=TIME, as keywords")
        made._create()
        if "clock" in wanted:  # first, so that the seed's records do not expire
            made.clock.set(wanted["clock"])
        if "seed" in wanted:
            made.seed(self._node.path.parent / wanted["seed"])
        return made

    def report_sections(self) -> Iterator[tuple[str, str]]:
        """Yield what the report of the failed test says about its namespaces: headings and texts."""
        self._has_failed = True
        server, must_stay = self._server, self._keeps_namespaces
        server.keeps_running = server.keeps_running or must_stay
        for each in self._made:
            yield f"extcli log of {each.name}", server.log_of(each.name)
            if refused := _refusals(server, each.name):
                yield f"extcli refused requests of {each.name}", refused
            if directory := os.environ.get(exec_run.ON_FAILURE):
                place = os.path.join(directory, exec_run.NAMESPACE_FOLDERS, each.name)
                yield "extcli kept", f"after the run, its data and journal are in {place}"
            elif must_stay:
                process = server.process
                stop = f" (its service keeps running; stop it with kill {process.pid})" if process else ""
                yield "extcli kept", f"{each.url}{stop}"

    @property
    def _keeps_namespaces(self) -> bool:
        return bool(self._node.config.getoption("--extcli-keep"))

    def drop(self) -> None:
        """Close the connections, and drop the namespaces, unless the test failed and they are to stay."""
        is_kept = self._has_failed and (self._keeps_namespaces or exec_run.ON_FAILURE in os.environ)
        for each in self._made:
            each.close() if is_kept else each.drop()


def _refusals(server: Server, namespace: str) -> str:
    """Return the latest requests and frames that were refused or got no response, with the reason; empty if none."""
    from extcli.journal.views import entries_text

    path = f"{NAMESPACES}/{namespace}/_emulator/journal?status=4xx,5xx,none&limit=5"
    entries: list[Json] = []
    with suppress(CliError):
        entries = document_of(server.http.send("GET", path), {"entries": [dict]})["entries"]
    return entries_text(reversed(entries), sys.maxsize).plain  # not cut: many reports are read in a CI log
