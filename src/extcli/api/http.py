"""HTTP connections to a service."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import urlsplit

from emulator.contract.names import TOKEN
from extcli import __version__, clock
from extcli.api.failures import incomplete, no_tls, not_connected, proxy_refused, timed_out, undecodable
from extcli.api.masking import shown, shown_body, shown_url
from extcli.api.trust import certificates
from extcli.errors import CliError, TooLarge, UsageError

# Skip httpx's own command line: it imports click, pygments and rich, half of httpx's import time.
_absent = "httpx._main" not in sys.modules
if _absent:
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
import httpx  # noqa: E402

if _absent:
    del sys.modules["httpx._main"]

CONNECT_SECONDS = 5.0
PROBE = 16 << 20
"""Bytes read of the response to a probe. Another program may respond without end."""
RESPONSE = 64 << 20
"""Bytes of a response that is read as a whole."""
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
"""OpenSSL's reasons, in different versions, if the other side answers without TLS."""

_HEADER = "both must be printable ASCII"
_CONTROL = ("/_emulator", "/_ns")
"""Beginnings of the paths of the control API."""

Response = httpx.Response


class Streamed(Protocol):
    """A request body that is produced while it is sent.

    Each iteration starts from the beginning, for repeated requests.
    """

    @property
    def length(self) -> int | None: ...

    """In bytes; `None` if unknown."""

    def __iter__(self) -> Iterator[bytes]: ...


Body = bytes | Streamed

__all__ = ["Body", "Http", "Response", "httpx"]


class Http:
    """A connection to one service."""

    def __init__(
        self, url: str, *, timeout: float, trace: Callable[[str], None] | None, control_token: str | None = None
    ) -> None:
        """`trace` receives a line for each part of an exchange, without secrets.

        Calls of the control API carry the `control_token`, if there is one.
        """
        self.url = url
        self._control_token = control_token
        self._trace = trace
        self._client = httpx.Client(**client_options(url, timeout))

    @property
    def timeout(self) -> float:
        """The timeout of requests, in seconds."""
        return self._client.timeout.read or 0.0

    def at(self, url: str) -> Http:
        """Return an `Http` for another address of the same server, which shares its connections."""
        other = copy(self)
        other.url = url
        return other

    def send(self, method: str, path: str, *, body: Body | None = None) -> Response:
        """Send a probe without credentials and return its whole response. Raises `Unreachable`."""
        with self.stream(method, path, body=body, is_probe=True) as response:
            response.read()
            return response

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Body | None = None,
        authorization: str | None = None,
        is_probe: bool = False,
        extra: Mapping[str, str] | None = None,
        within: float | None = None,
        limit: int | None = RESPONSE,
    ) -> Iterator[Response]:
        """Send a request and yield its response before the body is read. Raises `Unreachable`.

        Reading the body raises `TooLarge` above `limit` decoded bytes, and `Unreachable` after `within` seconds; for a
        probe of extcli itself those are 16 MiB and the timeout. Without a limit, the caller bounds each item of the
        stream; the body of an error stays bounded.
        `extra` are headers that are added to the usual ones, or replace them; their names are lower case.
        """
        fields = headers(body, authorization) | dict(extra or {})
        if self._control_token and path.startswith(_CONTROL):
            fields.setdefault(TOKEN, self._control_token)
        with translate_errors(self.url):
            if is_probe:
                fields["x-request-id"] = probe_id()
            request = self._client.build_request(
                method, self.url + path, params=query or None, content=body, headers=fields
            )
            if self._trace:
                for line in _traced(request, body, authorization):
                    self._trace(f"> {line}")
            started = clock.elapsed()
            response = self._client.send(request, stream=True)
            if is_probe:
                within = self._client.timeout.read if within is None else within
                limit = PROBE if limit is None else min(limit, PROBE)
            if limit is None and response.status_code >= 300:
                limit = RESPONSE
            response = bounded(response, self.url, limit=limit, within=within)
            if self._trace:
                milliseconds = (clock.elapsed() - started) * 1000
                self._trace(f"< {response.status_code} {response.reason_phrase}, {milliseconds:.1f} ms")
                if request_id := response.headers.get("x-request-id"):
                    self._trace(f"< x-request-id: {request_id}")
            try:
                yield response
            finally:
                response.close()

    def trace_body(self, response: Response) -> None:
        """Trace the body of a response that was read, with secrets masked."""
        if self._trace and response.content:
            self._trace(f"< {shown(response.content)}")

    def set_timeout(self, seconds: float) -> None:
        """Change the timeout of requests."""
        self._client.timeout = _limits(seconds)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class _Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The decoded body of a response, for synchronous and asynchronous clients, with a limit of size and of time."""

    def __init__(self, response: Response, url: str, *, limit: int | None, deadline: float | None) -> None:
        self._response = response
        self._url = url
        self._limit = limit
        self._deadline = deadline
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._response.iter_bytes():
            self._check(piece)
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.aiter_bytes():
            self._check(piece)
            yield piece

    def _check(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._limit is not None and self._size > self._limit:
            raise TooLarge(f"a response of {self._url}", self._limit)
        if self._deadline is not None and clock.elapsed() > self._deadline:
            raise timed_out(self._url)

    def close(self) -> None:
        self._response.close()

    async def aclose(self) -> None:
        await self._response.aclose()


def bounded(response: Response, url: str, *, limit: int | None, within: float | None = None) -> Response:
    """Return a response whose decoded body is limited in bytes, and in seconds from now."""
    deadline = None if within is None else clock.elapsed() + within
    fields = [(name, value) for name, value in response.headers.multi_items() if name != "content-encoding"]
    return Response(
        response.status_code,
        headers=fields,
        stream=_Body(response, url, limit=limit, deadline=deadline),
        request=response.request,
        extensions=response.extensions,
    )


def _traced(request: httpx.Request, body: Body | None, authorization: str | None) -> Iterator[str]:
    """Yield the lines that show a request, with secrets masked."""
    yield f"{request.method} {shown_url(str(request.url))}"
    if authorization:
        client_id, _, token = authorization.partition(" ")
        yield f"authorization: {client_id}{' ***' if token else ''}"
    if body is None:
        return
    yield f"content-type: {request.headers['content-type']}"
    if isinstance(body, bytes):
        yield shown_body(request.url.path, body)
    else:
        yield f"{'an unknown number of' if body.length is None else body.length} bytes"


def url_of(url: str, query: Mapping[str, Any]) -> str:
    """Return the complete URL of a request, in httpx's spelling."""
    with translate_errors(url):
        return str(httpx.URL(url, params=query) if query else httpx.URL(url))


def headers(body: Body | None, authorization: str | None) -> dict[str, str]:
    """Return the headers of a request."""
    fields = {
        "user-agent": f"extcli/{__version__}",
        "accept": "application/json",
        "accept-encoding": "gzip",
    }
    if body is not None:
        fields["content-type"] = "application/json"
    if body is not None and not isinstance(body, bytes) and body.length is not None:
        fields["content-length"] = str(body.length)
    if authorization:
        if not (authorization.isascii() and authorization.isprintable()):
            raise UsageError("the client id or the token has a character that no header can carry", why=_HEADER)
        fields["authorization"] = authorization
    return fields


def probe_id() -> str:
    """Return a request id that marks a request of extcli's own, which the journal of an emulator does not list."""
    return f"probe-{os.urandom(6).hex()}"


def client_options(url: str, timeout: float) -> dict[str, Any]:
    """Return the arguments for every httpx client of extcli."""
    parts = urlsplit(url)
    return {
        "timeout": _limits(timeout),
        # Loading the CA certificates takes longer than most calls, and http does not need them.
        "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if parts.scheme == "http" else certificates(),
        # A service on this machine is never behind a proxy.
        "trust_env": not is_loopback(parts.hostname or ""),
    }


def _limits(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))


def proxy_of(url: str) -> str:
    """Return the environment variable whose proxy httpx uses for a URL; empty if it uses none."""
    from urllib.request import getproxies, proxy_bypass

    parts, proxies = urlsplit(url), getproxies()
    names = [name for name in (parts.scheme, "all") if proxies.get(name)]
    if not names or is_loopback(parts.hostname or "") or proxy_bypass(parts.hostname or ""):
        return ""
    return f"{names[0].upper()}_PROXY"


def is_loopback(host: str) -> bool:
    """Return whether the host is a name or number of the loopback interface."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Turn httpx errors into `CliError`. Most of their texts are dropped, because they may quote a token."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeEncodeError):
        raise UsageError(f"cannot build this request to {url}", fix="check the path, ids and client id") from None
    except httpx.HTTPError as error:
        raise unreachable(url, error) from None


def unreachable(url: str, error: httpx.HTTPError) -> CliError:
    """Return the error for a request whose response is missing or incomplete."""
    if isinstance(error, httpx.ConnectTimeout):
        return not_connected(url, "no connection in time")
    if isinstance(error, httpx.TimeoutException):
        return timed_out(url)
    if isinstance(error, httpx.ProxyError):
        return proxy_refused(url)
    if isinstance(error, httpx.DecodingError):
        return undecodable(url)
    if isinstance(error, httpx.ConnectError) and any(name in str(error) for name in NO_TLS):
        return no_tls(url)
    if isinstance(error, httpx.ConnectError):
        return not_connected(url, _cause_of_error(error))
    return incomplete(url)


def _cause_of_error(error: httpx.HTTPError) -> str:
    text = str(error).partition("] ")[2] or str(error)
    return text[:1].lower() + text[1:]
