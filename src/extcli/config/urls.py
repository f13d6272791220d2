"""What counts as an address: of the service, of its socket, and of a path below it."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from extcli.errors import UsageError

WEB = ("http", "https")
SOCKET = ("ws", "wss")


def checked_url(text: str, origin: str, *, schemes: tuple[str, str] = WEB, like: str) -> str:
    """A base address without its last slash; raises `UsageError`, which proposes one `like` this."""
    how = f"write it like {like}"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in schemes and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        shown = "what it holds" if "@" in text else repr(text)  # before an @ there may be a password
        raise UsageError(f"{shown} ({origin}) is no {schemes[0]}(s) address", fix=how)
    if parts.username or parts.password:
        raise UsageError(f"the address in {origin} carries a user name or password", fix=how)
    # Not what they hold: `?` and `#` alone would swallow every path as well.
    if "?" in text or "#" in text:
        raise UsageError(f"{text!r} ({origin}) goes beyond the base address", fix=how)
    return text.rstrip("/")


def socket_of(url: str) -> str:
    """Where the socket of a service is: `ws` for `http`, `wss` for `https`, and `/ws`."""
    scheme, _, rest = url.partition("://")
    return f"{'wss' if scheme.lower() == 'https' else 'ws'}://{rest}/ws"


def checked_path(text: str, origin: str) -> str:
    """A path below `/v1/e/`, without slashes around it; raises `UsageError`."""
    path = text.strip("/")
    if not re.fullmatch(r"[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*", path) or {".", ".."} & set(path.split("/")):
        raise UsageError(f"{text!r} ({origin}) is no path below /v1/e/", fix="write it like link/pin")
    return path


def same_address(one: str, other: str) -> bool:
    """Whether two addresses are one, however it is spelt: case of the host, its usual port, a slash at the end."""
    return _spelt_one_way(one) == _spelt_one_way(other)


def may_be_one_service(one: str, other: str) -> bool:
    """Whether two addresses may lead to one service: whatever their schemes, and with all names of this machine alike.

    It errs towards yes, so it is for warnings, and never for where a secret may be sent.
    """
    return _spelt_loosely(one) == _spelt_loosely(other)


def _spelt_loosely(url: str) -> tuple[str, int | None, str]:
    _, host, port, path = _spelt_one_way(url)
    return _machine(host), None if port in (80, 443) else port, re.sub("/+", "/", unquote(path))


def _machine(host: str) -> str:
    """The host; for all names and numbers of this machine's loopback the same. `127.1` is `127.0.0.1`."""
    # Only asked where a profile says production, and most commands start without.
    from ipaddress import IPv6Address, ip_address
    from socket import inet_aton

    if host == "localhost" or host.endswith(".localhost"):
        return "localhost"
    try:
        number = ip_address(inet_aton(host))
    except OSError:
        try:
            number = ip_address(host)
        except ValueError:
            return host
    if isinstance(number, IPv6Address) and number.ipv4_mapped:
        number = number.ipv4_mapped
    return "localhost" if number.is_loopback or number.is_unspecified else str(number)


def _spelt_one_way(url: str) -> tuple[str, str, int | None, str]:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443, "ws": 80, "wss": 443}.get(parts.scheme)
    except ValueError:
        return "", url, None, ""
    return parts.scheme, (parts.hostname or "").rstrip("."), port, parts.path.rstrip("/")
