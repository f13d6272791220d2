"""One request to the service, and the interface of objects that send it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from extcli.api.http import Body, Response
from extcli.api.masking import shown_url
from extcli.errors import UsageError

SERVICE = "/v1/e/"
CONTROL = "/_emulator/"
NAMESPACES = "/_ns"


@dataclass(frozen=True, slots=True)
class Call:
    """One request, without credentials."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Body | None = None
    signed: bool = True
    """Whether to send it with the credentials of the caller."""
    is_probe: bool = False
    """Whether extcli makes it for itself, so that the journal of an emulator does not list it."""

    def __str__(self) -> str:
        return f"{self.method} {shown_url(self.path)}"


class Caller(Protocol):
    """Sends calls with credentials. Raises `ErrorResponse` for a status of 300 or above."""

    def perform(self, call: Call) -> Response: ...
    @contextmanager
    def stream(self, call: Call) -> Iterator[Response]: ...


def encoded(value: object) -> bytes:
    """Return compact UTF-8 JSON. Raises `UsageError` for an argument that was not UTF-8."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise UsageError("an argument is not UTF-8 text") from None


class Probing:
    """Sends calls marked as probes: requests that extcli makes for itself, which the journal leaves out."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def perform(self, call: Call) -> Response:
        return self._caller.perform(replace(call, is_probe=True))

    @contextmanager
    def stream(self, call: Call) -> Iterator[Response]:
        with self._caller.stream(replace(call, is_probe=True)) as response:
            yield response


def without_none(**values: Any) -> dict[str, Any]:
    """Return the keyword arguments that are not `None`, as a dict."""
    return {name: value for name, value in values.items() if value is not None}
