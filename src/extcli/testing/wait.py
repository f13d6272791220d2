"""Waits for what a test expects, without sleeping: the service answers as soon as the change is saved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from emulator.contract.names import MARK
from extcli.api.control import Control
from extcli.output.views import outcome_lines
from extcli.testing.calls import ModeT, Part, document, operation

TIMEOUT = 5.0
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
        timeout: float = TIMEOUT,
    ) -> dict[str, Any]:
        """Wait for votes: all together, for some values (`values={1: 2}`), or the sum of the values."""
        value = None if values is None else ",".join(f"{each}={wanted}" for each, wanted in values.items())
        return self._meet("poll", poll, timeout, count=count, value=value, sum=sum, since=since)

    @operation
    def ranking(
        self,
        ranking: str,
        *,
        count: Count | None = None,
        key: str | None = None,
        score: Count | None = None,
        since: int | None = None,
        timeout: float = TIMEOUT,
    ) -> dict[str, Any]:
        """Wait for answers: all together, or the users who gave the answer `key`."""
        return self._meet("rank", ranking, timeout, count=count, key=key, score=score, since=since)

    @operation
    def buffer(
        self,
        buffer: str,
        *,
        count: Count | None = None,
        latest: object = None,
        since: int | None = None,
        timeout: float = TIMEOUT,
    ) -> dict[str, Any]:
        """Wait for entries of an accumulation buffer, or until the newest is `latest`."""
        newest = None if latest is None else json.dumps(latest)
        return self._meet("accumulate", buffer, timeout, count=count, latest=newest, since=since)

    @operation
    def store(
        self,
        store: str,
        path: str = "",
        *,
        equals: object = None,
        user: str | None = None,
        since: int | None = None,
        timeout: float = TIMEOUT,
    ) -> dict[str, Any]:
        """Wait until a store has a value at this JSON pointer, or just this value. Viewer stores have a `user`."""
        value = None if equals is None else json.dumps(equals)
        return self._meet("store", store, timeout, path=path, equals=value, user=user, since=since)

    @operation
    def json_store(
        self, store: str, path: str = "", *, equals: object = None, since: int | None = None, timeout: float = TIMEOUT
    ) -> dict[str, Any]:
        """Wait for a JSON store as for a store."""
        value = None if equals is None else json.dumps(equals)
        return self._meet("json_store", store, timeout, path=path, equals=value, since=since)

    @operation
    def pin(
        self, event: str, *, count: Count | None = None, since: int | None = None, timeout: float = TIMEOUT
    ) -> dict[str, Any]:
        """Wait until a PIN was `issued`, `used` or `revoked`."""
        return self._meet("pin", event, timeout, count=count, since=since)

    @operation
    def broadcast(
        self, event: str, *, count: Count | None = None, since: int | None = None, timeout: float = TIMEOUT
    ) -> dict[str, Any]:
        """Wait until an event was broadcast."""
        return self._meet("broadcast", event, timeout, count=count, since=since)

    @operation
    def journal(
        self,
        endpoint: str = "*",
        /,
        *,
        count: Count | None = None,
        since: int | None = None,
        timeout: float = TIMEOUT,
        status: str | int | None = None,
        role: str | None = None,
        user: str | None = None,
        search: str | None = None,
    ) -> dict[str, Any]:
        """Wait for entries of the journal, such as `journal("POST /v1/e/vote", status=200, count=2)`.

        `since` is the `number` of an entry.
        """
        return self._meet(
            "journal",
            endpoint,
            timeout,
            {},
            count=count,
            since=since,
            status=status,
            role=role,
            user=user,
            search=search,
        )

    @operation
    def sockets(self, topic: str = "connected", *, count: Count = 1, timeout: float = TIMEOUT) -> dict[str, Any]:
        """Wait until `count` sockets are connected, or subscribed to a topic."""
        return self._meet("sockets", topic, timeout, count=count)

    def _meet(
        self, subject: str, name: str, timeout: float, scope: Mapping[str, str] | None = None, **wanted: Any
    ) -> dict[str, Any]:
        given = {key: value for key, value in wanted.items() if value not in (None, "")}
        query = {
            "for": subject,
            "id": name,
            **(self._scope if scope is None else scope),
            **given,
            "timeout": round(timeout * 1000),
        }
        outcome: dict[str, Any] = document(self._control.wait(query))
        if not outcome["met"]:
            within = f" within {timeout:g} s" if timeout else ""
            raise AssertionError("\n".join([f"{subject} {name}: not met{within}", *outcome_lines(outcome)]))
        return dict(outcome["found"])
