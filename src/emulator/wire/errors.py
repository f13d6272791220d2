"""The body of every error, on both transports (ruling W4)."""

from __future__ import annotations

from emulator.errors import ServiceError
from emulator.wire import json_codec


def error_body(error: ServiceError) -> bytes:
    """Ruling W4: the socket's error shape and the `reason` and `info` that REST clients read, with the same facts."""
    return json_codec.encode(
        {
            "errors": [{"status": error.status, "title": error.title, "detail": detail} for detail in error.details],
            "reason": error.reason,
            "info": "; ".join(error.details),
        }
    )
