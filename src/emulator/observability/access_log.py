"""One line of the log for each answered request. It says of who asked the client id, role and channel, and no user."""

from __future__ import annotations

import logging

from emulator.callers import Caller

REQUESTS = "emulator.requests"
LONGEST_PATH = 200
_log = logging.getLogger(REQUESTS)


def log_request(what: dict[str, str], status: int, seconds: float, size: int, caller: Caller | None) -> None:
    """Write the line; `what` was asked, by names for the fields of JSON. `size` is that of the answer, in bytes."""
    fields: dict[str, object] = {**what, "status": status, "duration_ms": round(seconds * 1000, 3), "bytes": size}
    who = ""
    if caller is not None:
        fields |= {"client_id": caller.client_id, "role": str(caller.role), "channel": caller.channel_id}
        who = f", {caller.client_id} {caller.role} {caller.channel_id or '-'}"
    asked = " ".join(filter(None, what.values())) or "what cannot be read"
    _log.info("%s: %s in %.1f ms, %s bytes%s", asked, status, seconds * 1000, size, who, extra=fields)
