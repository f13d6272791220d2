"""One request to the service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from extcli.api.http import Body
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

    def __str__(self) -> str:
        return f"{self.method} {shown_url(self.path)}"


def encoded(value: object) -> bytes:
    """Return compact UTF-8 JSON. Raises `UsageError` for an argument that was not UTF-8."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise UsageError("an argument is not UTF-8 text") from None


def without_none(**values: Any) -> dict[str, Any]:
    """Return the keyword arguments that are not `None`, as a dict."""
    return {name: value for name, value in values.items() if value is not None}
