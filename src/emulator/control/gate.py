"""Who may call the control API: programs on this machine, never web pages of another origin."""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from litestar.types import HTTPScope

from emulator.contract.names import TOKEN_HEADER
from emulator.core.errors import Facts, Forbidden, refusal
from emulator.core.limits import parse_address
from emulator.core.wire.url import parse_query

_FORBIDDEN = (Forbidden, "Forbidden", "W5")
_ELSEWHERE = "A client on another machine called the control API"


@refusal(*_FORBIDDEN, "The control API does not accept this host",
         "Use a loopback address, or start `extcli serve --control-host NAME`.")  # fmt: skip
def unknown_host(*, host: str) -> Facts:
    detail = f"the control API does not accept the host {host!r}; allow it with --control-host, "
    detail += "or send the control token, which extcli reads from EXTCLI_CONTROL_TOKEN"
    return Facts(detail, f"Host {host!r}", "a loopback host, or one of --control-host")


@refusal(*_FORBIDDEN, _ELSEWHERE, "Set EXTCLI_CONTROL_TOKEN to the token that `extcli serve` printed at its start.")
def no_control_token() -> Facts:
    detail = "a client on another machine needs the control token to call the control API: send it in the header "
    detail += "X-Emulator-Token, or set EXTCLI_CONTROL_TOKEN for extcli"
    held = "a client on another machine without the token"
    return Facts(detail, held, "the control token, or a client on this machine")


@refusal(*_FORBIDDEN, _ELSEWHERE, "Call the control API on this machine, or start `extcli serve --control-host NAME`.")
def foreign_proxy() -> Facts:
    detail = "a proxy forwarded this request from another machine, which the control API does not accept; "
    detail += "allow the proxy's host name with --control-host"
    return Facts(detail, "a proxy that forwards for a client on another machine", "a client on this machine")


@refusal(*_FORBIDDEN, "A web page of another origin called the control API",
         "Call the control API from a program or from a page of the service itself.")  # fmt: skip
def foreign_page() -> Facts:
    held = "the header Origin or Sec-Fetch-Site of another site"
    detail = "the control API does not accept requests from web pages of another origin"
    return Facts(detail, held, "a request of the same origin, or without these headers")


TOKEN_COOKIE = "emulator_token"
"""The cookie with the control token, for the pages of the dashboard."""
SIGN_IN_PATH = "/_emulator/enter"
"""The page that takes the control token from its URL, and sets the cookie."""
_TOKEN_HEADER = TOKEN_HEADER.encode()
_FETCH_SITE = b"sec-fetch-site"
_FORWARDED_HOST = re.compile(r"\b(?:for|host)=\"?([^\";,]*)", re.IGNORECASE)


class ControlGate:
    """Admits requests with the control token, from loopback, or for an allowed host; never from pages of another
    origin.

    Any client may send a loopback `Host`, so without a token the client's address must also be loopback. Behind a
    proxy, the proxy reports that address. No other address is trusted: a container engine's gateway hides who connects.
    """

    def __init__(self, allowed_hosts: Collection[str], token: str) -> None:
        """An empty `token` admits no caller."""
        self._allowed = frozenset(host.lower() for host in allowed_hosts)
        self._token = token.encode()

    def __call__(self, scope: HTTPScope) -> None:
        """Raise `Forbidden` for a request that may not use the control API."""
        self._check_request(scope["headers"], (scope["client"] or ("", 0))[0])

    def may_create_namespace(self, headers: Iterable[tuple[bytes, bytes]], address: str) -> bool:
        """Return whether a request may create a namespace: any but one from a page that may not use the control API.

        `address` is the client's. A program, or a person who types an address, needs an allowed host only if it calls
        this machine by a name: a page can give a name of its own the address of this machine.
        """
        named = dict(headers)
        found = parse_address(host := _hostname(_host_header(named)))
        is_own = host == "localhost" or (found is not None and not found.is_unspecified)
        if is_own and b"origin" not in named and named.get(_FETCH_SITE, b"none") == b"none":
            return True
        with suppress(Forbidden):
            self._check_request(headers, address)
            return True
        return False

    def _check_request(self, given: Iterable[tuple[bytes, bytes]], address: str) -> None:
        self._check_client(given, address)
        headers = dict(given)
        origin = headers.get(b"origin", b"").decode("latin-1")
        # Browsers send simple cross-site requests without a preflight, so closed CORS alone would not stop them.
        host = origin.partition("://")[2].lower()
        is_foreign = bool(origin) and host != _host_header(headers).lower()
        site = headers.get(_FETCH_SITE, b"none")
        # Browsers send the origin `null` with a form of a page whose referrer policy is `no-referrer`.
        is_own_form = origin == "null" and site == b"same-origin"
        if (is_foreign and not is_own_form) or site in (b"cross-site", b"same-site"):
            raise foreign_page()

    def check_dashboard(self, scope: HTTPScope) -> None:
        """Raise `Forbidden` for a request that may not see the dashboard.

        Any web page may link to it, but none may frame it.
        """
        headers = dict(scope["headers"])
        is_read = scope["method"] == "GET"
        query = scope["query_string"] if is_read and scope["path"] == SIGN_IN_PATH else b""
        if self._is_token(parse_query(query).get("token", "").encode()):
            return
        is_link = is_read and headers.get(b"sec-fetch-mode") == b"navigate"
        if is_link and headers.get(b"sec-fetch-dest") == b"document":
            self._check_client(scope["headers"], (scope["client"] or ("", 0))[0])
        else:
            self(scope)

    def _is_token(self, given: bytes) -> bool:
        """Whether a text is the control token; compared in constant time."""
        return bool(self._token) and hmac.compare_digest(given, self._token)

    def _check_client(self, given: Iterable[tuple[bytes, bytes]], address: str) -> None:
        """Raise `Forbidden` unless the request has the token, is for an allowed host, or comes from this machine."""
        headers = dict(given)
        if self._is_token(headers.get(_TOKEN_HEADER, b"")) or self._is_token(_cookie_token(headers)):
            return
        host = _hostname(_host_header(headers))
        if host not in self._allowed:
            if not is_loopback(host):
                raise unknown_host(host=host[:60])
            if not is_loopback(address):
                raise no_control_token()
            if not all(map(is_loopback, _forwarded_hosts(given))):
                raise foreign_proxy()


def _cookie_token(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the control token from the request's cookie; empty if there is none."""
    start = f"{TOKEN_COOKIE}=".encode()
    cookies = (each.strip() for each in headers.get(b"cookie", b"").split(b";"))
    return next((each.removeprefix(start) for each in cookies if each.startswith(start)), b"")


def _host_header(headers: Mapping[bytes, bytes]) -> str:
    return headers.get(b"host", b"").decode("latin-1")


def _hostname(authority: str) -> str:
    try:
        return (urlsplit(f"//{authority}").hostname or "").lower()
    except ValueError:
        return ""


def _forwarded_hosts(headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """Return the addresses and host names that proxies have added; unreadable ones as they are."""
    found: list[str] = []
    for name, value in headers:
        text = value.decode("latin-1")
        if name in (b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"):
            found += text.split(",")
        elif name == b"forwarded":
            found += _FORWARDED_HOST.findall(text) or [text]
    return [host if is_loopback(host := each.strip()) else _hostname(host) for each in found]


def is_loopback(host: str) -> bool:
    """Whether a host is an address of this machine, or `localhost`."""
    address = parse_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)
