"""Validates and compares addresses: of the service, of its WebSocket, and paths below it."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from extcli.errors import UsageError

SOCKET = ("ws", "wss")
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
"""Addresses to listen on that no client can connect to, and one that it can."""


def checked_url(text: str, origin: str, *, schemes: tuple[str, str] = ("http", "https"), like: str) -> str:
    """Return a base URL without its final slash. Raises `UsageError`, which shows `like` as an example."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in schemes and bool(parts.hostname) and (parts.port or 1) > 0 and parts.username is None
    except ValueError:
        usable = False
    # `?` or `#` alone would swallow every path.
    if not usable or "?" in text or "#" in text:
        shown = "its value" if "@" in text else repr(text)  # a password may stand before an @
        why = "it must have a host, and no user, password, query or fragment"
        what = f"{shown} ({origin}) is not a URL with {schemes[0]} or {schemes[1]}"
        raise UsageError(what, why=why, fix=f"write it like {like}")
    return text.rstrip("/")


def socket_of(url: str) -> str:
    """Return the default WebSocket address of a service: `ws` for `http`, `wss` for `https`, and `/ws`."""
    scheme, _, rest = url.partition("://")
    return f"{'wss' if scheme.lower() == 'https' else 'ws'}://{rest}/ws"


def service_of(socket: str) -> str:
    """Return the address of the service that has this WebSocket address: the reverse of `socket_of`."""
    scheme, _, rest = socket.partition("://")
    return f"{'https' if scheme.lower() == 'wss' else 'http'}://{rest.removesuffix('/ws')}"


def checked_path(text: str, origin: str) -> str:
    """Return a path below `/v1/e/` without slashes around it. Raises `UsageError`."""
    path = text.strip("/")
    if not re.fullmatch(r"[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*", path) or {".", ".."} & set(path.split("/")):
        raise UsageError(f"{text!r} ({origin}) is not a path below /v1/e/", fix="write it like link/pin")
    return path


def same_address(one: str, other: str) -> bool:
    """Return whether two URLs are equal apart from case of the host, default port and a final slash."""
    return _normalized(one) == _normalized(other)


def may_be_one_service(one: str, other: str) -> bool:
    """Return whether two URLs may reach the same service: schemes are ignored, and all names of this machine are equal.

    True in case of doubt, so use it only for warnings, never to decide where a secret may be sent.
    """
    return _normalized_loosely(one) == _normalized_loosely(other)


def is_loopback(host: str) -> bool:
    """Return whether the host is a name or number of the loopback interface. `127.1` is `127.0.0.1`."""
    # imported here: most commands need neither
    from ipaddress import IPv6Address, ip_address
    from socket import inet_aton

    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        number = ip_address(host if ":" in host else inet_aton(host))
    except (OSError, ValueError):
        return False
    if isinstance(number, IPv6Address) and number.ipv4_mapped:
        number = number.ipv4_mapped
    return number.is_loopback


def reachable_url(url: str) -> str:
    """Return the URL of a service, with an address to connect to if it listens on all addresses."""
    parts = urlsplit(url)
    host, colon, port = parts.netloc.rpartition(":")
    return parts._replace(netloc=f"{_ANY_ADDRESS.get(host, host)}{colon}{port}").geturl()


def _normalized_loosely(url: str) -> tuple[str, int | None, str]:
    _, host, port, path = _normalized(url)
    here = is_loopback(host) or host in ("0.0.0.0", "::")
    return "localhost" if here else host, None if port in (80, 443) else port, re.sub("/+", "/", unquote(path))


def _normalized(url: str) -> tuple[str, str, int | None, str]:
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "", url, None, ""
    return parts.scheme, (parts.hostname or "").rstrip("."), port, parts.path.rstrip("/")
