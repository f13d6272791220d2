"""Access to the control API: for programs on this machine, never for web pages."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from litestar.types import HTTPScope

from emulator.errors import Forbidden


class ControlGate:
    """Admits requests whose `Host` is loopback or allowed by name, unless a page of another origin sent them."""

    def __init__(self, allowed_hosts: Collection[str]) -> None:
        self._allowed = frozenset(host.lower() for host in allowed_hosts)

    def __call__(self, scope: HTTPScope) -> None:
        """Raise `Forbidden` for a request that may not use the control API."""
        headers = dict(scope["headers"])
        authority = headers.get(b"host", b"").decode("latin-1")
        host = _hostname(authority)
        if not (_is_loopback(host) or host in self._allowed):
            raise Forbidden(
                "Forbidden", f"the control API does not answer to the host {host[:60]!r}; allow it with --control-host"
            )
        origin = headers.get(b"origin", b"").decode("latin-1")
        # Browsers send simple cross-site requests without a preflight, so closed CORS alone would not stop them.
        is_foreign = bool(origin) and urlsplit(origin).netloc.lower() != authority.lower()
        if is_foreign or headers.get(b"sec-fetch-site", b"none") in (b"cross-site", b"same-site"):
            raise Forbidden("Forbidden", "the control API does not answer web pages of another origin")


def _hostname(authority: str) -> str:
    try:
        return (urlsplit(f"//{authority}").hostname or "").lower()
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
