"""The control API of an emulator, and its namespaces, as methods. Its calls need no credentials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from extcli.api.call import CONTROL, NAMESPACES, Call, encoded, without_none
from extcli.api.http import Body, Response
from extcli.api.signed_calls import CallsWithCredentials


class Control:
    """One method per endpoint. Each raises `Refused`, `ServerError` or `Unreachable`."""

    def __init__(self, caller: CallsWithCredentials) -> None:
        self._caller = caller

    def probing(self) -> Control:
        """Return the control API for reads of the command itself, which the journal leaves out."""
        return Control(self._caller.probing())

    def is_ready(self) -> Response:
        return self._get("ready")

    # The clock

    def read_clock(self) -> Response:
        return self._get("clock")

    def move_clock(self, change: Mapping[str, Any]) -> Response:
        return self._post("clock", change)

    def read_coming_expiries(self, limit: int) -> Response:
        return self._get("clock/next", limit=limit)

    # Data

    def count_contents(self) -> Response:
        return self._get("contents")

    def list_contents(self, kind: str, only: Mapping[str, Any], cursor: str) -> Response:
        """List a page of the emulator's records: all, or only records with one client id, channel or text."""
        return self._get(f"contents/{kind}", **only, limit=200, cursor=cursor)

    def reset(self, keep: int = 0) -> Response:
        """Delete all data. With `keep`, the reset can be undone for that many seconds."""
        return self._send("POST", "reset", without_none(undo=keep or None))

    def undo_reset(self) -> Response:
        return self._send("POST", "undo")

    def apply_seed(self, document: bytes) -> Response:
        return self._send("PUT", "seed", body=document)

    def save_snapshot(self, *, keys: bool) -> AbstractContextManager[Response]:
        """Return a context manager for the response with a snapshot of all data. Its body is not read yet."""
        return self._stream("snapshot", {"keys": "true"} if keys else {})

    def load_snapshot(self, body: Body) -> Response:
        return self._send("PUT", "snapshot", body=body)

    def expire_pin(self, client_id: str, **pin: str) -> Response:
        """Make one PIN expire, by `pin` or `digest`."""
        return self._post("pins/expire", {"client_id": client_id, **pin})

    # Connections and faults

    def list_sockets(self, limits: Mapping[str, Any]) -> Response:
        """List the open sockets, at most 1,000: all, or only the sockets of one client id and channel."""
        return self._get("sockets", **limits, limit=1000)

    def close_sockets(self, closing: Mapping[str, Any]) -> Response:
        return self._post("sockets/close", closing)

    def stall_sockets(self, stalling: Mapping[str, Any]) -> Response:
        return self._post("sockets/stall", stalling)

    def add_fault(self, fault: Mapping[str, Any]) -> Response:
        return self._post("faults", fault)

    def replace_faults(self, faults: Sequence[Mapping[str, Any]]) -> Response:
        return self._send("PUT", "faults", body=encoded({"faults": faults}))

    def list_faults(self) -> Response:
        return self._get("faults")

    def remove_fault(self, id: str) -> Response:
        return self._post("faults/remove", {"id": id})

    def clear_faults(self) -> Response:
        return self._send("DELETE", "faults")

    # What has happened

    def wait(self, condition: Mapping[str, Any]) -> Response:
        """Wait on the service until a condition is met, or its timeout has passed."""
        return self._send("GET", "wait", condition)

    def explain(self, request_id: str | None = None) -> Response:
        """Explain the latest entry of the journal with this request id, or the latest refusal."""
        return self._get("explain", id=request_id)

    def read_journal(self, query: Mapping[str, Any]) -> Response:
        return self._send("GET", "journal", query)

    def read_journal_entry(self, id: str, **form: str) -> Response:
        """Read a journal entry by its request id or number. With `form`, read it as a command or test."""
        return self._get("journal/entry", id=id, **form)

    def follow_journal(self, query: Mapping[str, Any]) -> AbstractContextManager[Response]:
        """Return a context manager for the journal's stream.

        Its body has one line of JSON per entry and does not end.
        """
        return self._stream("journal/stream", query)

    def call_as(self, body: bytes) -> Response:
        """Make a REST call as the caller that the body names."""
        return self._send("POST", "call", body=body)

    def read_parity(self, of: str) -> Response:
        """Read production's verdicts on the requests of the `namespace` or of the whole `service`."""
        return self._get("parity", of=of)

    # Namespaces

    def list_namespaces(self) -> Response:
        return self._caller.perform(Call("GET", NAMESPACES, signed=False))

    def create_namespace(self, name: str, source: str | None = None) -> Response:
        """Create a namespace, empty or as a copy of `source`. An empty name lets the service choose one."""
        path = f"{NAMESPACES}/{name}" if name else NAMESPACES
        return self._caller.perform(Call("POST", path, without_none(**{"from": source}), signed=False))

    def drop_namespace(self, name: str) -> Response:
        return self._caller.perform(Call("DELETE", f"{NAMESPACES}/{name}", signed=False))

    def _get(self, name: str, **query: Any) -> Response:
        return self._send("GET", name, without_none(**query))

    def _post(self, name: str, document: object) -> Response:
        return self._send("POST", name, body=encoded(document))

    def _send(
        self, method: str, name: str, query: Mapping[str, Any] | None = None, body: Body | None = None
    ) -> Response:
        return self._caller.perform(Call(method, f"{CONTROL}{name}", query or {}, body, signed=False))

    def _stream(self, name: str, query: Mapping[str, Any]) -> AbstractContextManager[Response]:
        return self._caller.stream(Call("GET", f"{CONTROL}{name}", query, signed=False))
