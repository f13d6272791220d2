"""A request with its answer, for reports and recordings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HEADERS = ("content-type", "retry-after")
"""The headers of an answer that rules are about."""
CORS_HEADERS = (
    "access-control-allow-origin",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-expose-headers",
)
"""The headers of an answer to a page, which sends `Origin`."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request with its answer, or one frame of a socket."""

    caller: str
    request: str
    """`POST vote?id=x`, or `set state`."""
    body: Any
    """The decoded body of the request; `None` without one."""
    status: int
    """0 for an update of a socket."""
    answer: Any
    """The decoded body, or its text."""
    headers: Mapping[str, str]
    request_id: str
