"""The clock and the faults of a service, and waits for what a test expects, without sleeping."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from emulator.contract.names import MARK_HEADER
from extcli.api.client import Service
from extcli.faults import checked_members
from extcli.output import times
from extcli.output.views import outcome_lines
from extcli.reading import Json
from extcli.testing.actor import TIMEOUT, ModeT, Part, json_body, operation


@dataclass(eq=False, repr=False)
class Clock(Part[ModeT]):
    """Moves the time of one namespace. Each move returns what expired, once it has expired."""

    _control: Service

    @operation
    def now(self) -> int:
        """Return the time in Unix ms."""
        return self._now()

    @operation
    def advance(self, by: str | timedelta) -> list[Json]:
        """Move the clock forward by `"8d"`, `"1h30m"`, `"500ms"` or a timedelta."""
        ms = times.parse_duration(by) if isinstance(by, str) else by // timedelta(milliseconds=1)
        return self._move({"advance": ms})

    @operation
    def set(self, to: str | int | datetime) -> list[Json]:
        """Set the time: RFC 3339, Unix ms or a datetime. The clock runs on from there, unless it is frozen."""
        return self._move({"set": self._instant(to)})

    @operation
    def freeze(self, at: str | int | datetime | None = None) -> list[Json]:
        """Stop the clock at its current time, or at the given time."""
        return self._move({"freeze": True} if at is None else {"freeze": True, "set": self._instant(at)})

    @operation
    def unfreeze(self) -> list[Json]:
        """Let a stopped clock run again."""
        return self._move({"freeze": False})

    def _now(self) -> int:
        return int(json_body(self._control.get("clock"))["now"])

    def _instant(self, at: str | int | datetime) -> int:
        if isinstance(at, datetime):
            return round(at.timestamp() * 1000)
        return at if isinstance(at, int) else times.parse_instant(at, self._now)

    def _move(self, change: Mapping[str, Any]) -> list[Json]:
        return list(json_body(self._control.post("clock", change))["expired"])


class FaultOptions(TypedDict, total=False):
    """The options of `extcli fault add` as Python has them."""

    id: str
    event: str
    role: str
    user: str
    client_id: str
    channel: str
    status: int
    retry_after: int
    delay: str | timedelta
    drop: bool
    reset: bool
    truncate: int
    stall: bool
    close: int
    lose: bool
    double: bool
    reorder: bool
    times: int
    share: float
    seed: int
    lasts: str | timedelta


@dataclass(eq=False, repr=False)
class Faults(Part[ModeT]):
    """Adds and removes faults. They end with the namespace, and with `reset`."""

    _control: Service

    @operation
    def add(self, match: str | None = None, **options: Unpack[FaultOptions]) -> Json:
        """Add a fault, and return it: `add("POST /v1/e/vote", status=503, times=3)`.

        Takes the options of `extcli fault add`; `lasts` is `--for`. Raises `UsageError`, or `Refused` if the
        service finds an error.
        """
        given = {"match": match, **options, "for": options.get("lasts")}
        given.pop("lasts", None)
        texts = {name: _duration_as_text(value) for name, value in given.items()}
        fault = checked_members(texts, lambda option: "lasts" if option == "for" else option)
        return json_body(self._control.post("faults", fault))

    @operation
    def list(self) -> list[Json]:
        """Return the faults, oldest first, with the number of their `hits`."""
        return [*json_body(self._control.get("faults"))["faults"]]

    @operation
    def remove(self, id: str) -> None:
        """Remove one fault."""
        self._control.post("faults/remove", {"id": id})

    @operation
    def clear(self) -> None:
        """Remove all faults."""
        self._control.delete("faults")


def _duration_as_text(value: object) -> object:
    return f"{value // timedelta(milliseconds=1)}ms" if isinstance(value, timedelta) else value


Count = int | str
"""`3` is at least three, `"=3"` exactly three."""


class WaitOptions(TypedDict, total=False):
    """What most waits take."""

    count: Count
    """How many there must be."""
    since: int
    """A mark: only later changes count."""
    timeout: float
    """Seconds of real time, whatever the clock of the namespace."""


@dataclass(eq=False, repr=False)
class Wait(Part[ModeT]):
    """Waits until a condition holds.

    Each operation returns what it found, or raises `AssertionError` with the condition and the last changes.
    """

    _control: Service
    _client_id: str
    _channel: str

    @operation
    def mark(self) -> int:
        """Return the mark of the latest change, for `since`."""
        return int(self._control.get("clock").headers[MARK_HEADER])

    @operation
    def poll(
        self, poll: str, *, values: Mapping[int, Count] | None = None, sum: Count = "", **wanted: Unpack[WaitOptions]
    ) -> Json:
        """Wait for votes: all together, for some values (`values={1: 2}`), or the sum of the values."""
        value = None if values is None else ",".join(f"{each}={count}" for each, count in values.items())
        return self._wait_until_met("poll", poll, wanted, value=value, sum=sum)

    @operation
    def ranking(self, ranking: str, *, key: str = "", score: Count = "", **wanted: Unpack[WaitOptions]) -> Json:
        """Wait for answers: all together, or the users who gave the answer `key`."""
        return self._wait_until_met("rank", ranking, wanted, key=key, score=score)

    @operation
    def buffer(self, buffer: str, *, latest: object = None, **wanted: Unpack[WaitOptions]) -> Json:
        """Wait for entries of an accumulation buffer, or until the newest is `latest`."""
        return self._wait_until_met("accumulate", buffer, wanted, latest=_json_or_none(latest))

    @operation
    def store(
        self, store: str, path: str = "", *, equals: object = None, user: str = "", **wanted: Unpack[WaitOptions]
    ) -> Json:
        """Wait until a store has a value at this JSON pointer, or just this value. Viewer stores have a `user`."""
        return self._wait_until_met("store", store, wanted, path=path, equals=_json_or_none(equals), user=user)

    @operation
    def json_store(self, store: str, path: str = "", *, equals: object = None, **wanted: Unpack[WaitOptions]) -> Json:
        """Wait until a JSON store has a value at this JSON pointer, or just this value."""
        return self._wait_until_met("json_store", store, wanted, path=path, equals=_json_or_none(equals))

    @operation
    def pin(self, event: str, **wanted: Unpack[WaitOptions]) -> Json:
        """Wait until a PIN was `issued`, `used` or `revoked`."""
        return self._wait_until_met("pin", event, wanted)

    @operation
    def broadcast(self, event: str, **wanted: Unpack[WaitOptions]) -> Json:
        """Wait until an event was broadcast."""
        return self._wait_until_met("broadcast", event, wanted)

    @operation
    def journal(
        self,
        endpoint: str = "*",
        /,
        *,
        status: str | int = "",
        role: str = "",
        user: str = "",
        search: str = "",
        **wanted: Unpack[WaitOptions],
    ) -> Json:
        """Wait for entries of the journal, such as `journal("POST /v1/e/vote", status=200, count=2)`.

        `since` is the `number` of an entry.
        """
        chosen = {"status": status, "role": role, "user": user, "search": search}
        return self._wait_until_met("journal", endpoint, wanted, **chosen)

    @operation
    def sockets(self, topic: str = "connected", **wanted: Unpack[WaitOptions]) -> Json:
        """Wait until `count` sockets, by default one, are connected, or subscribed to a topic."""
        return self._wait_until_met("sockets", topic, {"count": 1, **wanted})

    def _wait_until_met(self, subject: str, name: str, wanted: WaitOptions, **more: Any) -> Json:
        timeout = wanted.get("timeout", TIMEOUT)
        place = {} if subject == "journal" else {"client_id": self._client_id, "channel_id": self._channel}
        given = {key: value for key, value in (wanted | more).items() if value not in (None, "")}
        query = {"for": subject, "id": name, **place, **given, "timeout": round(timeout * 1000)}
        outcome: Json = json_body(self._control.get("wait", **query))
        if not outcome["met"]:
            within = f" within {timeout:g} s" if timeout else ""
            raise AssertionError("\n  ".join([f"{subject} {name}: not met{within}", *outcome_lines(outcome, name)]))
        return dict(outcome["found"])


def _json_or_none(value: object) -> str | None:
    return None if value is None else json.dumps(value)
