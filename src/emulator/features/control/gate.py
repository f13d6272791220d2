"""Who may drive a service through the control API: programs on this machine, and never a page on the web."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from litestar.types import HTTPScope

from emulator.errors import Forbidden


class ControlGate:
    """Lets a request through whose `Host` is loopback or was named, and that no foreign page sent."""

    def __init__(self, named_hosts: Collection[str]) -> None:
        self._named = frozenset(host.lower() for host in named_hosts)

    def __call__(self, scope: HTTPScope) -> None:
        """Raise `Forbidden` for a request that may not pass."""
        headers = dict(scope["headers"])
        authority = headers.get(b"host", b"").decode("latin-1")
        host = _hostname(authority)
        if not (_is_loopback(host) or host in self._named):
            raise Forbidden("Forbidden", f"the control API is not for the host {host[:60]!r}: see --control-host")
        origin = headers.get(b"origin", b"").decode("latin-1")
        # A browser sends simple cross-site requests without asking first, so closed CORS alone would not stop them.
        if origin and urlsplit(origin).netloc.lower() != authority.lower():
            raise Forbidden("Forbidden", "the control API takes no calls from web pages of another origin")
        if headers.get(b"sec-fetch-site", b"none") in (b"cross-site", b"same-site"):
            raise Forbidden("Forbidden", "the control API takes no calls from web pages of another origin")


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
