"""The interface through which requests are counted."""

from __future__ import annotations

from typing import Protocol

from emulator.errors import ServiceError


class Recorder(Protocol):
    """Counts requests and failures. No method blocks or raises.

    `seconds` is the time from the complete headers of a request to its response.
    """

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a response of an endpoint; `path` is as declared."""

    def replied(self, action: str, status: int, seconds: float) -> None:
        """Count a reply over a socket; `action` is empty if unknown."""

    def refused(self, error: ServiceError) -> None:
        """Count an error response."""

    def storage(self, *, ok: bool) -> None:
        """Note whether an operation of the storage engine succeeded."""
