"""A namespace of a service, for one test, and waits for what the test expects, without sleeping."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any, cast

from emulator.contract.names import MARK
from extcli.api.control import Control
from extcli.api.http import Http
from extcli.api.websocket import WebSocketClient
from extcli.config.settings import DEFAULT_CHANNEL, DEFAULT_CLIENT_ID, DEFAULT_USER
from extcli.config.urls import socket_of
from extcli.output.views import outcome_lines
from extcli.seeds import read
from extcli.seeds.reader import apply
from extcli.testing.actor import (
    TIMEOUT,
    Actor,
    Awaited,
    Blocking,
    ModeT,
    Part,
    control,
    document,
    operation,
    signed_calls,
)
from extcli.testing.controls import Clock, Events, Faults, Game

SECONDS = 5.0
"""Seconds to wait, unless a test gives another time; the service allows up to 60. With 0 it is an assertion."""
Count = int | str
"""`3` is at least three, `"=3"` exactly three."""


class Wait(Part[ModeT]):
    """Waits until a condition holds.

    Each operation returns what it found, or raises `AssertionError` with the condition and the last changes.

    `since` is a mark: only later changes count. `timeout` is real time, whatever the clock of the namespace.
    """

    def __init__(self, control: Control, client_id: str, channel: str, *, awaited: bool) -> None:
        super().__init__(awaited=awaited)
        self._control = control
        self._scope = {"client_id": client_id, "channel_id": channel}

    @operation
    def mark(self) -> int:
        """Return the mark of the latest change, for `since`."""
        return int(self._control.read_clock().headers[MARK])

    @operation
    def poll(
        self,
        poll: str,
        *,
        count: Count | None = None,
        values: Mapping[int, Count] | None = None,
        sum: Count | None = None,
        since: int | None = None,
        timeout: float = SECONDS,
    ) -> dict[str, Any]:
        """Wait for votes: all together, for some values (`values={1: 2}`), or the sum of the values."""
        value = None if values is None else ",".join(f"{each}={wanted}" for each, wanted in values.items())
        return self._wait_until_met("poll", poll, timeout, count=count, value=value, sum=sum, since=since)

    @operation
    def ranking(
        self,
        ranking: str,
        *,
        count: Count | None = None,
        key: str | None = None,
        score: Count | None = None,
        since: int | None = None,
        timeout: float = SECONDS,
    ) -> dict[str, Any]:
        """Wait for answers: all together, or the users who gave the answer `key`."""
        return self._wait_until_met("rank", ranking, timeout, count=count, key=key, score=score, since=since)

    @operation
    def buffer(
        self,
        buffer: str,
        *,
        count: Count | None = None,
        latest: object = None,
        since: int | None = None,
        timeout: float = SECONDS,
    ) -> dict[str, Any]:
        """Wait for entries of an accumulation buffer, or until the newest is `latest`."""
        newest = None if latest is None else json.dumps(latest)
        return self._wait_until_met("accumulate", buffer, timeout, count=count, latest=newest, since=since)

    @operation
    def store(
        self,
        store: str,
        path: str = "",
        *,
        equals: object = None,
        user: str | None = None,
        since: int | None = None,
        timeout: float = SECONDS,
    ) -> dict[str, Any]:
        """Wait until a store has a value at this JSON pointer, or just this value. Viewer stores have a `user`."""
        value = None if equals is None else json.dumps(equals)
        return self._wait_until_met("store", store, timeout, path=path, equals=value, user=user, since=since)

    @operation
    def json_store(
        self,
        store: str,
        path: str = "",
        *,
        equals: object = None,
        since: int | None = None,
        timeout: float = SECONDS,
    ) -> dict[str, Any]:
        """Wait until a JSON store has a value at this JSON pointer, or just this value."""
        value = None if equals is None else json.dumps(equals)
        return self._wait_until_met("json_store", store, timeout, path=path, equals=value, since=since)

    @operation
    def pin(
        self, event: str, *, count: Count | None = None, since: int | None = None, timeout: float = SECONDS
    ) -> dict[str, Any]:
        """Wait until a PIN was `issued`, `used` or `revoked`."""
        return self._wait_until_met("pin", event, timeout, count=count, since=since)

    @operation
    def broadcast(
        self, event: str, *, count: Count | None = None, since: int | None = None, timeout: float = SECONDS
    ) -> dict[str, Any]:
        """Wait until an event was broadcast."""
        return self._wait_until_met("broadcast", event, timeout, count=count, since=since)

    @operation
    def journal(
        self,
        endpoint: str = "*",
        /,
        *,
        count: Count | None = None,
        since: int | None = None,
        timeout: float = SECONDS,
        status: str | int | None = None,
        role: str | None = None,
        user: str | None = None,
        search: str | None = None,
    ) -> dict[str, Any]:
        """Wait for entries of the journal, such as `journal("POST /v1/e/vote", status=200, count=2)`.

        `since` is the `number` of an entry.
        """
        chosen = {"status": status, "role": role, "user": user, "search": search}
        return self._wait_until_met("journal", endpoint, timeout, {}, count=count, since=since, **chosen)

    @operation
    def sockets(self, topic: str = "connected", *, count: Count = 1, timeout: float = SECONDS) -> dict[str, Any]:
        """Wait until `count` sockets are connected, or subscribed to a topic."""
        return self._wait_until_met("sockets", topic, timeout, count=count)

    def _wait_until_met(
        self, subject: str, name: str, timeout: float, scope: Mapping[str, str] | None = None, **wanted: Any
    ) -> dict[str, Any]:
        given = {key: value for key, value in wanted.items() if value not in (None, "")}
        place = self._scope if scope is None else scope
        query = {"for": subject, "id": name, **place, **given, "timeout": round(timeout * 1000)}
        outcome: dict[str, Any] = document(self._control.wait(query))
        if not outcome["met"]:
            within = f" within {timeout:g} s" if timeout else ""
            raise AssertionError("\n  ".join([f"{subject} {name}: not met{within}", *outcome_lines(outcome, name)]))
        return dict(outcome["found"])


class Namespace(Part[ModeT]):
    """A service of its own: data, clock and connections that no other test sees."""

    def __init__(
        self,
        root: Http,
        name: str,
        *,
        client_id: str = DEFAULT_CLIENT_ID,
        channel: str = DEFAULT_CHANNEL,
        secret: bytes | None = None,
        secret_file: Path | None = None,
        awaited: bool = False,
    ) -> None:
        """`secret` signs the tokens of the callers. Without it the sandbox issues them. `secret_file` is for `env`."""
        super().__init__(awaited=awaited)
        self._secret = secret
        self._secret_file = secret_file
        self.name = name
        self.client_id = client_id
        self.channel = channel
        self._root = root
        self._http = root.at(f"{root.url}/_ns/{name}")
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
        found = {"EXTCLI_URL": self.url, "EXTCLI_WS_URL": self.ws_url, **place}
        return found | ({"EXTCLI_SECRET_FILE": str(self._secret_file)} if self._secret_file else {})

    @property
    def as_async(self) -> Namespace[Awaited]:
        """The namespace for an asynchronous test: operations return awaitables."""
        twin: Any = copy(self)
        twin.awaited = True
        return cast("Namespace[Awaited]", twin)

    # Callers

    def actor(self, role: str, user: str | None = None, *, channel: str | None = None) -> Actor[ModeT]:
        """Return a caller of this role. With an empty `channel`, a backend or admin acts for all channels."""
        where = self.channel if channel is None else channel or None
        calls = signed_calls(self._http, self.client_id, role, user, where, self._secret)
        return Actor(calls, awaited=self.awaited)

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
            pin = Actor[Blocking](self._calls_of("broadcaster"), awaited=False).pin()
        socket = self._connected_socket()
        socket.request("authenticate", data={"client_id": self.client_id, "pin": pin})
        return Game(socket, awaited=self.awaited)

    @operation
    def listen(self, *events: str) -> Events[ModeT]:
        """Listen to these events of the channel from now on; without names, to all of them."""
        socket = self._connected_socket()
        token = self._calls_of("viewer", DEFAULT_USER).authorization.partition(" ")[2]
        socket.request("authenticate", data={"client_id": self.client_id, "jwt": token})
        return Events(socket, events or ("*",), awaited=self.awaited)

    # The namespace itself

    @property
    def clock(self) -> Clock[ModeT]:
        """The clock of the namespace."""
        return Clock(control(self._http), awaited=self.awaited)

    @property
    def faults(self) -> Faults[ModeT]:
        """The faults of the namespace: failures on purpose."""
        return Faults(control(self._http), awaited=self.awaited)

    @property
    def wait(self) -> Wait[ModeT]:
        """Waits until a condition is met in the channel."""
        return Wait(control(self._http), self.client_id, self.channel, awaited=self.awaited)

    @operation
    def logs(self, /, **filters: str | int) -> list[dict[str, Any]]:
        """Return the latest entries of the journal, oldest first, at most 1,000: `logs(path="vote", status="4xx")`.

        Takes the filters of `GET /_emulator/journal`.
        """
        response = control(self._http).read_journal({"order": "newest", "limit": 1_000, **filters})
        return list(reversed(document(response)["entries"]))

    @operation
    def seed(self, path: str | Path, *, trusted: bool = False) -> dict[str, Any]:
        """Put the data of a seed file into the namespace: all of it, or nothing. Returns what the service counted.

        The files that it names must be in its folder, unless it is `trusted`. Raises `InvalidFile`, which names line
        and field of each error.
        """
        return apply(read(path, os.environ, trusted=trusted), control(self._http))

    @operation
    def reset(self) -> None:
        """Delete all data, and set the clock to real time."""
        control(self._http).reset()

    @operation
    def drop(self) -> None:
        """Delete the namespace. The fixture does it after the test."""
        self.close()
        control(self._root).drop_namespace(self.name)

    def close(self) -> None:
        """Close the connections of games and listeners."""
        while self._sockets:
            self._sockets.pop().close()

    def _calls_of(self, role: str, user: str | None = None) -> Any:
        return signed_calls(self._http, self.client_id, role, user, self.channel, self._secret)

    def _connected_socket(self) -> WebSocketClient:
        socket = WebSocketClient(self.ws_url, timeout=TIMEOUT, trace=lambda _: None)  # pytest shows the log
        self._sockets.append(socket)
        return socket
