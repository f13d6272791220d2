"""The access log: one line per answered request. It names the client id, role and channel, never the user."""

from __future__ import annotations

import logging

from emulator.callers import Caller

REQUESTS = "emulator.requests"
LONGEST_PATH = 200
_log = logging.getLogger(REQUESTS)


def log_request(request: dict[str, str], status: int, seconds: float, size: int, caller: Caller | None) -> None:
    """Log one request. `request` maps JSON field names to values, such as `method`; `size` is the response in bytes."""
    fields: dict[str, object] = {**request, "status": status, "duration_ms": round(seconds * 1000, 3), "bytes": size}
    who = ""
    if caller is not None:
        fields |= {"client_id": caller.client_id, "role": str(caller.role), "channel": caller.channel_id}
        who = f", {caller.client_id} {caller.role} {caller.channel_id or '-'}"
    shown = " ".join(filter(None, request.values())) or "unreadable request"
    _log.info("%s: %s in %.1f ms, %s bytes%s", shown, status, seconds * 1000, size, who, extra=fields)
