"""Whether a page may be shown in a frame: by its headers, read once from a server on this machine."""

from __future__ import annotations

import asyncio
import re
import socket
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import urljoin, urlsplit

import httpx

from emulator.dashboard.rig.arrangement import default_port, is_loopback, port_of

TIMEOUT = 2.0
"""Seconds for one page, with its redirects."""
MAX_RESPONSE = 65_536
"""Bytes that are read of a response."""
_MAX_REDIRECTS = 3
_SCRIPT_PATH = re.compile(rb"/_emulator/(?:platform-helper|sdk)\.js")
_BEFORE_URL = re.compile(rb"""["'\s=<>]""")
_HELPER = "platform-helper.js"
_SDK = "sdk.js"
_CALLS_GO_TO_MUXY = "If it uses the published SDK, its calls go to Muxy itself."
_MISSING_SCRIPT_TEXTS = {
    (_HELPER, _SDK): "This page loads neither platform-helper.js nor sdk.js, so it knows neither its viewer nor "
    f"this service. {_CALLS_GO_TO_MUXY}",
    (_HELPER,): "This page does not load platform-helper.js, so identity, theme and language have no effect.",
    (_SDK,): f"This page does not load sdk.js. {_CALLS_GO_TO_MUXY}",
}
"""What the lack of scripts means."""


class _NotLocal(Exception):
    """The host has no address on this machine."""


@dataclass(frozen=True)
class Finding:
    """Whether a page may be shown in a frame, or why not."""

    url: str
    kind: str
    """`fine`, `forbidden`, `failed`, `unchecked`, `elsewhere` or `scriptless`: without the helper or `sdk.js`."""
    text: str = ""
    missing: tuple[str, ...] = ()
    """The scripts of the service that a scriptless page lacks, in the order in which it must load them."""


async def check_page(url: str, service: str) -> Finding:
    """Fetch a page from a loopback address, and return whether pages of `service`, a base URL, may frame it.

    Connects to no other machine, and follows no redirect to another origin.
    """
    try:
        async with asyncio.timeout(TIMEOUT):
            status, headers, body, final = await _fetch(url)
    except _NotLocal:
        text = "The service connects only to this machine, so it cannot check whether this page forbids frames."
        return Finding(url, "unchecked", f"{text} If the frame stays empty, check the headers of the page.")
    except TimeoutError:
        return Finding(url, "failed", f"The server of this page did not answer within {TIMEOUT:g} s.")
    except (OSError, ValueError, httpx.HTTPError, httpx.InvalidURL) as error:
        is_refused = isinstance(error, httpx.ConnectError) and "SSL" not in str(error)
        reason = "connection refused" if is_refused else "no valid response"
        return Finding(url, "failed", f"This page's server does not answer: {reason}. Start the server, then reload.")
    if status in range(300, 400):
        return Finding(url, "failed", f"This page redirects to {final[:200]}, which the frame does not load.")
    if status >= 400:
        return Finding(url, "failed", f"The server returns {status} for this page.")
    if header := forbidding_header(headers, service):
        return Finding(url, "forbidden", f"This page forbids frames by its header {header}")
    other = ""
    if script := _SCRIPT_PATH.search(body):
        other = _BEFORE_URL.split(body[: script.start()])[-1].decode("latin-1")
    if "://" in other and _with_one_loopback_name(other) != _with_one_loopback_name(service):
        return Finding(url, "elsewhere", f"This page uses the service {other[:200]}, but this rig uses {service}.")
    missing = tuple(script for script in (_HELPER, _SDK) if f"/_emulator/{script}".encode() not in body)
    if missing and len(body) < MAX_RESPONSE:
        return Finding(url, "scriptless", _MISSING_SCRIPT_TEXTS[missing], missing)
    return Finding(url, "fine")


def forbidding_header(headers: httpx.Headers, service: str) -> str:
    """Return the header by which a page forbids `service` to frame it, as it was sent; empty if none does.

    As in browsers, `frame-ancestors` overrides `X-Frame-Options`.
    """
    is_decided = False
    for policy in headers.get_list("Content-Security-Policy", split_commas=True):
        for directive in policy.split(";"):
            name, *sources = directive.split() or [""]
            if name.lower() == "frame-ancestors":
                is_decided = True
                if not any(_source_matches(source.lower(), service) for source in sources):
                    return f"Content-Security-Policy: {directive.strip()}"
                break
    options = headers.get("X-Frame-Options", "")
    names = {each.strip().lower() for each in options.split(",")}
    if not is_decided and names & {"deny", "sameorigin"}:
        return f"X-Frame-Options: {options}"
    return ""


def _source_matches(source: str, service: str) -> bool:
    """Whether a source of `frame-ancestors` includes the origin of a base URL, which is never the page's own."""
    own = urlsplit(service)
    if source == "*" or source == f"{own.scheme}:":
        return True
    scheme, _, rest = source.rpartition("://")
    host, _, port = rest.split("/")[0].partition(":")
    scheme = scheme or own.scheme
    allowed = f"{scheme}://{host}:{port or default_port(scheme)}"
    return fnmatchcase(f"{own.scheme}://{own.hostname}:{port_of(own)}", allowed)


async def _fetch(url: str) -> tuple[int, httpx.Headers, bytes, str]:
    """Return the status, the headers, the beginning of the body and the last URL, after redirects in its origin."""
    # Development servers sign their own certificates, and only headers and names of scripts are read.
    async with httpx.AsyncClient(verify=False, trust_env=False, timeout=None) as client:
        for _ in range(_MAX_REDIRECTS):
            before = httpx.URL(url)
            status, headers, body = await _get_from_loopback(client, before)
            if status not in (301, 302, 303, 307, 308) or "location" not in headers:
                break
            url = urljoin(url, headers["location"])
            after = httpx.URL(url)
            if (after.scheme, after.netloc) != (before.scheme, before.netloc):
                break
    return status, headers, body, url


async def _get_from_loopback(client: httpx.AsyncClient, url: httpx.URL) -> tuple[int, httpx.Headers, bytes]:
    """Return the response of the first address of this machine that accepts. Raises the error of the last one."""
    headers = {"host": url.netloc.decode(), "accept": "text/html", "accept-encoding": "identity"}
    for address in await _loopback_addresses(url):
        there = client.stream(
            "GET", url.copy_with(host=address), headers=headers, extensions={"sni_hostname": url.host}
        )
        try:
            async with there as response:
                body = b""
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) >= MAX_RESPONSE:
                        break
                return response.status_code, response.headers, body
        except httpx.ConnectError as error:
            failure = error
    raise failure


async def _loopback_addresses(url: httpx.URL) -> list[str]:
    """Return the addresses of a host on this machine. Raises `_NotLocal` if it has none."""
    if url.host == "localhost" or url.host.endswith(".localhost"):
        return ["127.0.0.1", "::1"]
    found = await asyncio.get_running_loop().getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    addresses = [str(address[0]) for *_, address in found]
    local = [address for address in addresses if is_loopback(address)]
    if not local:
        raise _NotLocal
    return local


def _with_one_loopback_name(base: str) -> str:
    """Return a base URL with any loopback host name replaced with one spelling, for comparisons."""
    try:
        parts = urlsplit(base)
        return f"{parts.port} {parts.path}" if is_loopback(parts.hostname or "") else base
    except ValueError:
        return base
