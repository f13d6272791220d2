"""One connection to the service for one request after the other, at as little cost as Python allows.

A million votes are a million requests, and httpx spends half a millisecond on each. The plain way here is asyncio's
transport with httptools' parser, as in the service itself; behind a proxy httpx does the work.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import httptools

from extcli.client import Call
from extcli.http import (
    CONNECT_SECONDS,
    certificates,
    client_options,
    explained,
    headers,
    httpx,
    hung_up,
    is_loopback,
    nobody_answers,
    too_slow,
)


class Lane(Protocol):
    """Sends one request at a time."""

    async def send(self, call: Call, authorization: str) -> tuple[int, bytes]:
        """The status and body of the answer, whatever it is. Raises `Unreachable`."""

    async def close(self) -> None:
        """Give the connection back."""


def open_lane(url: str, timeout: float) -> Lane:
    """A lane to the service; it connects when it is first used, and again when the service hung up in between."""
    host = urlsplit(url).hostname or ""
    if urlsplit(url).scheme in getproxies() and not is_loopback(host) and not proxy_bypass(host):
        return ProxiedLane(url, timeout)
    return DirectLane(url, timeout)


class ProxiedLane:
    """Through a proxy, by httpx. One client per lane: a shared pool walks through all its connections at each step."""

    def __init__(self, url: str, timeout: float) -> None:
        self._url = url
        self._client = httpx.AsyncClient(limits=httpx.Limits(max_connections=1), **client_options(url, timeout))

    async def send(self, call: Call, authorization: str) -> tuple[int, bytes]:
        with explained(self._url):
            fields = headers(call.body, authorization)
            request = self._client.build_request(
                call.method, self._url + call.path, params=call.query, content=call.body, headers=fields
            )
            answer = await self._client.send(request)
            return answer.status_code, answer.content

    async def close(self) -> None:
        await self._client.aclose()


class DirectLane:
    """Straight to the service."""

    def __init__(self, url: str, timeout: float) -> None:
        parts = urlsplit(url)
        self._url = url
        self._timeout = timeout
        self._address = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        self._tls: ssl.SSLContext | None = certificates() if parts.scheme == "https" else None
        self._prefix = parts.path
        self._host = parts.netloc
        self._connection: _Connection | None = None

    async def send(self, call: Call, authorization: str) -> tuple[int, bytes]:
        connection = self._connection
        if connection is None or not connection.usable:
            connection = self._connection = await self._connect()
        try:
            async with asyncio.timeout(self._timeout):
                return await connection.exchange(self._request(call, authorization))
        except TimeoutError:
            connection.close()
            raise too_slow(self._url) from None
        except (OSError, httptools.HttpParserError):
            connection.close()
            raise hung_up(self._url) from None

    async def close(self) -> None:
        if self._connection:
            self._connection.close()

    async def _connect(self) -> _Connection:
        host, port = self._address
        try:
            async with asyncio.timeout(min(self._timeout, CONNECT_SECONDS)):
                _, connection = await asyncio.get_running_loop().create_connection(
                    _Connection, host, port, ssl=self._tls
                )
                return connection
        except TimeoutError:
            raise nobody_answers(self._url, "no connection in time") from None
        except OSError as error:
            raise nobody_answers(self._url, (error.strerror or str(error)).lower()) from None

    def _request(self, call: Call, authorization: str) -> bytes:
        body = call.body or b""
        fields: Mapping[str, Any] = {"host": self._host, **headers(body, authorization), "content-length": len(body)}
        query = f"?{urlencode(call.query)}" if call.query else ""
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"{call.method} {self._prefix}{call.path}{query} HTTP/1.1\r\n{head}\r\n".encode("ascii") + body


class _Connection(asyncio.Protocol):
    """One TCP connection, and the answer that is on its way over it."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._body: list[bytes] = []
        self._has_head = False
        self.usable = True

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and wait for its answer. Raises `OSError` or `HttpParserError`."""
        self._answer = asyncio.get_running_loop().create_future()
        self._body, self._has_head = [], False
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        self.usable = False
        self._transport.abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.usable = False
            if self._answer and not self._answer.done():
                self._answer.set_exception(error)

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        if self._answer is None or self._answer.done():
            return
        if self._has_head and error is None:
            # An answer without a length ends with the connection.
            self._answer.set_result((self._parser.get_status_code(), b"".join(self._body)))
        else:
            self._answer.set_exception(error if isinstance(error, OSError) else ConnectionResetError())

    # What the parser calls

    def on_headers_complete(self) -> None:
        self._has_head = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if not self._has_head:  # an interim answer; the real one follows
            return
        if not self._parser.should_keep_alive():
            self.usable = False
            self._transport.close()
        if self._answer and not self._answer.done():
            self._answer.set_result((self._parser.get_status_code(), b"".join(self._body)))
