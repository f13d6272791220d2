"""The HTTP client of a service: connections, limits of size and time, the trace, and errors in words."""

from __future__ import annotations

import re
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from emulator.contract.names import TOKEN_HEADER
from extcli import __version__, clock
from extcli.api.call import Body, Call
from extcli.api.connection import probe_id, tls_context
from extcli.api.masking import shown, shown_body, shown_url
from extcli.config.urls import is_loopback
from extcli.errors import CliError, ExitCode, TooLarge, Unreachable, UsageError

# Skip httpx's own command line: it imports click, pygments and rich, half of httpx's import time.
_modules: dict[str, Any] = sys.modules
_modules.setdefault("httpx._main", None)
import httpx  # noqa: E402

if _modules["httpx._main"] is None:
    del _modules["httpx._main"]

CONNECT_SECONDS = 5.0
PROBE = 16 << 20
"""Bytes read of the response to a probe. Another program may respond without end."""
RESPONSE = 64 << 20
"""Bytes of a response that is read as a whole."""

_CONTROL = ("/_emulator", "/_ns")
"""Beginnings of the paths of the control API."""
_NO_TLS = re.compile("WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|PACKET_LENGTH_TOO_LONG")
"""OpenSSL's reasons, in different versions, if the other side answers without TLS."""

Response = httpx.Response


__all__ = ["Http", "Response", "httpx"]


class Http:
    """A connection to one service."""

    def __init__(
        self, url: str, *, timeout: float, trace: Callable[[str], None] | None = None, control_token: str | None = None
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
        with self.stream(Call(method, path, body=body), is_probe=True) as response:
            response.read()
            return response

    @contextmanager
    def stream(
        self,
        call: Call,
        *,
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
        fields = headers(call.body, authorization) | dict(extra or {})
        if self._control_token and call.path.startswith(_CONTROL):
            fields.setdefault(TOKEN_HEADER, self._control_token)
        if is_probe:
            fields["x-request-id"] = probe_id()
            within, limit = within or self.timeout, min(limit or PROBE, PROBE)
        with translate_errors(self.url):
            request = self._client.build_request(
                call.method, self.url + call.path, params=call.query or None, content=call.body, headers=fields
            )
            with closing(self._send(request)) as response:
                if limit is None and response.status_code >= 300:
                    limit = RESPONSE
                yield bounded(response, self.url, limit=limit, within=within)

    def trace_body(self, response: Response) -> None:
        """Trace the body of a response that was read, with secrets masked."""
        if self._trace and response.content:
            self._trace(f"< {shown(response.content)}")

    def set_timeout(self, seconds: float) -> None:
        """Change the timeout of requests."""
        self._client.timeout = _httpx_timeout(seconds)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _send(self, request: httpx.Request) -> Response:
        """Send a request, and trace it and the response."""
        if not self._trace:
            return self._client.send(request, stream=True)
        self._trace(f"> {request.method} {shown_url(str(request.url))}")
        client_id, space, _ = request.headers.get("authorization", "").partition(" ")
        if client_id:
            self._trace(f"> authorization: {client_id}{' ***' if space else ''}")
        if content_type := request.headers.get("content-type"):
            self._trace(f"> content-type: {content_type}")
            length = request.headers.get("content-length", "an unknown number of")
            is_whole = isinstance(request.stream, httpx.ByteStream)
            self._trace(f"> {shown_body(request.url.path, request.content) if is_whole else f'{length} bytes'}")
        started = clock.elapsed()
        response = self._client.send(request, stream=True)
        self._trace(f"< {response.status_code} {response.reason_phrase}, {(clock.elapsed() - started) * 1000:.1f} ms")
        if request_id := response.headers.get("x-request-id"):
            self._trace(f"< x-request-id: {request_id}")
        return response


@dataclass
class _Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The decoded body of a response, for synchronous and asynchronous clients. Each piece is checked."""

    _response: Response
    _checked: Callable[[bytes], bytes]

    def __iter__(self) -> Iterator[bytes]:
        return map(self._checked, self._response.iter_bytes())

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.aiter_bytes():
            yield self._checked(piece)


def bounded(response: Response, url: str, *, limit: int | None, within: float | None = None) -> Response:
    """Return a response whose decoded body is limited in bytes, and in seconds from now.

    The caller closes the response that it has given.
    """
    deadline = None if within is None else clock.elapsed() + within
    size = 0

    def checked(piece: bytes) -> bytes:
        nonlocal size
        size += len(piece)
        if limit is not None and size > limit:
            raise TooLarge(f"a response of {url}", limit)
        if deadline is not None and clock.elapsed() > deadline:
            raise timed_out(url)
        return piece

    return Response(
        response.status_code,
        headers=[(name, value) for name, value in response.headers.multi_items() if name != "content-encoding"],
        stream=_Body(response, checked),
        request=response.request,
        extensions=response.extensions,
    )


def url_of(url: str, query: Mapping[str, Any]) -> str:
    """Return the complete URL of a request, in httpx's spelling."""
    with translate_errors(url):
        return str(httpx.URL(url, params=query) if query else httpx.URL(url))


def headers(body: Body | None, authorization: str | None) -> dict[str, str]:
    """Return the headers of a request."""
    fields = {"user-agent": f"extcli/{__version__}", "accept": "application/json", "accept-encoding": "gzip"}
    if body is not None:
        fields["content-type"] = "application/json"
        if not isinstance(body, bytes) and body.length is not None:
            fields["content-length"] = str(body.length)
    if authorization:
        fields["authorization"] = authorization
    return fields


def client_options(url: str, timeout: float) -> dict[str, Any]:
    """Return the arguments for every httpx client of extcli."""
    parts = urlsplit(url)
    return {
        "timeout": _httpx_timeout(timeout),
        # Loading the CA certificates takes longer than most calls, and http does not need them.
        "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if parts.scheme == "http" else tls_context(),
        # A service on this machine is never behind a proxy.
        "trust_env": not is_loopback(parts.hostname or ""),
    }


def _httpx_timeout(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))


# Errors. They concern the WebSocket, too


class NotConnected(Unreachable):
    """Raised if no connection could be opened, so that nothing was sent."""


def not_connected(url: str, error: Exception) -> Unreachable:
    """Return the error for a service that accepts no connection, or has no TLS where the address requires it."""
    if _NO_TLS.search(str(error)):
        scheme, _, rest = url.partition("://")
        fix = f"if you want to send your data unencrypted, use {scheme[:-1]}://{rest}"
        return Unreachable(f"{url} does not use TLS", fix=fix)
    why = str(error).partition("] ")[2] or str(error)
    if isinstance(error, (TimeoutError, httpx.TimeoutException)):
        why = "no connection in time"
    fix = "start a service with `extcli serve`, or set --url or EXTCLI_URL (EXTCLI_WS_URL) to a running one"
    if re.search("certificate verify failed.*(self.signed|issuer)", why):
        fix = "if a private CA signed its certificate, set SSL_CERT_FILE to the CA's file"
    return NotConnected(f"cannot connect to {url}", why=why[:1].lower() + why[1:], fix=fix)


def timed_out(url: str) -> Unreachable:
    """Return the error for a response that did not arrive in time."""
    return Unreachable(f"no response from {url} in time", fix="allow more time with --timeout, for example 2m")


def ended_early(url: str, protocol: str) -> Unreachable:
    """Return the error for an answer that ends before it is complete, or that this protocol does not have."""
    fix = "check the address; if the service was stopped meanwhile, start it again"
    return Unreachable(f"{url} closed the connection, or does not speak {protocol}", fix=fix)


def proxy_refused(url: str) -> Unreachable:
    """Return the error for a proxy that does not forward the request."""
    fix = "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
    return Unreachable(f"the proxy for {url} refused the connection", fix=fix)


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Turn httpx errors into `CliError`. Most of their texts are dropped, because they may quote a token."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeEncodeError):
        raise UsageError(f"cannot build this request to {url}", fix="check the path, ids and client id") from None
    except (httpx.ConnectTimeout, httpx.ConnectError) as error:
        raise not_connected(url, error) from None
    except httpx.TimeoutException:
        raise timed_out(url) from None
    except httpx.ProxyError:
        raise proxy_refused(url) from None
    except httpx.DecodingError:
        refused = CliError(f"a response of {url} cannot be decoded", why="the compressed body is damaged")
        refused.exit_code = ExitCode.SERVICE_FAILED
        raise refused from None
    except httpx.HTTPError:
        raise ended_early(url, "HTTP") from None
