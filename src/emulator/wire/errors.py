"""The body of error replies (ruling W4)."""

from __future__ import annotations

from emulator.errors import ServiceError
from emulator.wire import json_codec


def error_body(error: ServiceError) -> bytes:
    """Serialize an error: `errors` as on the socket, and `reason` and `info` for REST clients, with the same facts."""
    return json_codec.encode(
        {
            "errors": [{"status": error.status, "title": error.title, "detail": detail} for detail in error.details],
            "reason": error.reason,
            "info": "; ".join(error.details),
        }
    )
