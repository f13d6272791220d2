"""The one importer of httpx: sends requests, and turns what the network does into the errors of this program."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import urlsplit

from extcli import __version__, clock
from extcli.config.settings import DEFAULT_URL
from extcli.errors import CliError, Unreachable, UsageError

# httpx brings its own command line, which loads click, pygments and rich into every start: half of its import time.
_absent = "httpx._main" not in sys.modules
if _absent:
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
import httpx  # noqa: E402

if _absent:
    del sys.modules["httpx._main"]

CONNECT_SECONDS = 5.0
ANSWERED_IN_PLAIN = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
"""What OpenSSL says, in its versions, of an answer that is no TLS."""

Answer = httpx.Response


class Streamed(Protocol):
    """A body that is made while it is sent. Each iteration begins anew, so that a request can be repeated."""

    @property
    def length(self) -> int: ...
    def __iter__(self) -> Iterator[bytes]: ...


Body = bytes | Streamed

__all__ = ["Answer", "Body", "Http", "httpx"]


class Http:
    """A connection to one service."""

    def __init__(self, url: str, *, timeout: float, trace: Callable[[str], None]) -> None:
        self.url = url
        self._trace = trace
        self._client = httpx.Client(**client_options(url, timeout))

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Body | None = None,
        authorization: str | None = None,
    ) -> Answer:
        """One request and its whole answer, whatever the status. Raises `Unreachable`."""
        with self.stream(method, path, query=query, body=body, authorization=authorization) as answer:
            answer.read()
            return answer

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Body | None = None,
        authorization: str | None = None,
    ) -> Iterator[Answer]:
        """One request, and its answer with the body still to be read. Raises `Unreachable`."""
        with explained(self.url):
            request = self._client.build_request(
                method, self.url + path, params=query or None, content=body, headers=headers(body, authorization)
            )
            self._trace(f"> {method} {request.url}")
            if authorization:
                client_id, _, token = authorization.partition(" ")
                self._trace(f"> authorization: {client_id}{' ***' if token else ''}")
            if body is not None:
                self._trace(f"> {len(body) if isinstance(body, bytes) else body.length} bytes")
            started = clock.elapsed()
            answer = self._client.send(request, stream=True)
            self._trace(f"< {answer.status_code} {answer.reason_phrase}, {(clock.elapsed() - started) * 1000:.1f} ms")
            try:
                yield answer
            finally:
                answer.close()

    def allow(self, seconds: float) -> None:
        """How long requests may take from now on."""
        self._client.timeout = _limits(seconds)

    def close(self) -> None:
        """Give the connection back."""
        self._client.close()


def headers(body: Body | None, authorization: str | None) -> dict[str, str]:
    """What every request carries."""
    fields = {"user-agent": f"extcli/{__version__}", "accept": "application/json"}
    if body is not None:
        fields["content-type"] = "application/json"
    if body is not None and not isinstance(body, bytes):
        fields["content-length"] = str(body.length)
    if authorization:
        fields["authorization"] = authorization
    return fields


def client_options(url: str, timeout: float) -> dict[str, Any]:
    """How every httpx client of this program is made."""
    parts = urlsplit(url)
    return {
        "timeout": _limits(timeout),
        # Loading the machine's certificates takes longer than most calls; a plain address never needs them.
        "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if parts.scheme == "http" else certificates(),
        # A service on this machine is never behind the proxy that HTTP_PROXY names.
        "trust_env": not is_loopback(parts.hostname or ""),
    }


def _limits(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))


@cache
def certificates() -> ssl.SSLContext:
    """Whom an https address is trusted by."""
    return httpx.create_ssl_context()


def is_loopback(host: str) -> bool:
    """Whether the host is this machine by its very name."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turns failures of httpx into errors that say what to do. Their own texts may quote a token, so few are shown."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError):
        raise UsageError(f"no request can be made of this for {url}", fix="check the path, ids and client id") from None
    except httpx.HTTPError as error:
        raise unreachable(url, error) from None


def unreachable(url: str, error: httpx.HTTPError) -> CliError:
    """What to tell somebody whose service does not answer."""
    if isinstance(error, httpx.ConnectTimeout):
        return not_connected(url, "no connection in time")
    if isinstance(error, httpx.TimeoutException):
        return timed_out(url)
    if isinstance(error, httpx.ProxyError):
        return Unreachable(f"the proxy in the way of {url} refused", fix="check HTTP_PROXY, HTTPS_PROXY and NO_PROXY")
    if isinstance(error, httpx.ConnectError) and _is_answered_in_plain(error):
        fix = f"try http://{url.partition('://')[2]}, if what you send may be read on the way"
        return Unreachable(f"the other side does not speak TLS: {url}", fix=fix)
    if isinstance(error, httpx.ConnectError):
        return not_connected(url, _cause(error))
    return dropped(url)


class NotConnected(Unreachable):
    """No connection came about, so nothing was sent."""


def not_connected(url: str, why: str) -> NotConnected:
    """No connection."""
    fix = "check --url, EXTCLI_URL or the profile, or start a service here with `extcli serve`"
    if url == DEFAULT_URL:
        fix = "start one with `extcli serve`, or set --url or EXTCLI_URL to one that runs"
    return NotConnected(f"nobody answers at {url}", why=why, fix=fix)


def timed_out(url: str) -> Unreachable:
    """A connection, and no answer."""
    return Unreachable(f"{url} took too long to answer", fix="give it more time with --timeout, for example 2m")


def dropped(url: str) -> Unreachable:
    """A connection that ended too early."""
    return Unreachable(
        f"{url} hung up or does not speak HTTP",
        why="the connection ended without a whole answer",
        fix="check the port; if the service was stopped meanwhile, start it again",
    )


def _is_answered_in_plain(error: httpx.HTTPError) -> bool:
    """Whether TLS failed at the first bytes that came back: versions of OpenSSL differ in what they call that."""
    return any(name in str(error) for name in ANSWERED_IN_PLAIN)


def _cause(error: httpx.HTTPError) -> str:
    text = str(error).partition("] ")[2] or str(error)
    return text[:1].lower() + text[1:]
