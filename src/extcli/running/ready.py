"""Asks a service on this machine whether it is ready."""

from __future__ import annotations

from extcli.api import local_http

_TIMEOUT = 10.0


def problem(url: str) -> str:
    """Return why the service at this URL is not ready: its answer's body, or the error. Empty if it is ready."""
    try:
        answer = local_http.get(url, "/_emulator/ready", seconds=_TIMEOUT, largest=1 << 20)
    except local_http.Failed as failed:
        return str(failed)
    return "" if answer.status == 200 else answer.body.decode(errors="replace")
