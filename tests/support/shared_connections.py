"""Sends the requests of test clients over connections that all clients of a service share.

A request costs half the CPU that it costs with httpx's own connections, and a new client no connection at all.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse

import httpx


class SharedConnections(httpx.BaseTransport):
    """Connections to one service over plain HTTP/1.1. Threads may share it."""

    def __init__(self) -> None:
        self._idle: deque[socket.socket] = deque()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        timeouts = request.extensions.get("timeout", {})
        connection = self._free_connection() or _connect(request.url, timeouts.get("connect"))
        connection.settimeout(timeouts.get("read"))
        try:
            _send(connection, request)
            response = HTTPResponse(connection, method=request.method)
            response.begin()
        except TimeoutError as error:
            connection.close()
            raise httpx.ReadTimeout("timed out") from error
        except (HTTPException, OSError) as error:
            connection.close()
            is_reset = isinstance(error, OSError) and not isinstance(error, HTTPException)
            raise (httpx.ReadError if is_reset else httpx.RemoteProtocolError)(str(error)) from error
        return httpx.Response(
            response.status,
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.msg.items()],
            stream=_Body(response, connection, self._idle),
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": response.reason.encode("latin-1")},
        )

    def _free_connection(self) -> socket.socket | None:
        while self._idle:
            connection = self._idle.pop()
            if not select.select([connection], [], [], 0)[0]:
                return connection
            connection.close()  # the service has closed it
        return None

    def close(self) -> None:
        """Keep the connections: the end of one client does not concern the others."""

    def close_all(self) -> None:
        """Close the connections that no request uses."""
        while self._idle:
            self._idle.pop().close()


class _Body(httpx.SyncByteStream):
    def __init__(self, response: HTTPResponse, connection: socket.socket, idle: deque[socket.socket]) -> None:
        self._response = response
        self._connection = connection
        self._idle = idle
        self._is_complete = False

    def __iter__(self) -> Iterator[bytes]:
        response = self._response
        try:
            while part := response.read1(1 << 16):
                yield part
            if response.length:
                raise httpx.RemoteProtocolError(f"the connection ended {response.length} bytes before the body")
            self._is_complete = True
        except TimeoutError as error:
            raise httpx.ReadTimeout("timed out") from error
        except HTTPException as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        except OSError as error:
            raise httpx.ReadError(str(error)) from error

    def close(self) -> None:
        self._response.close()
        if self._is_complete and not self._response.will_close:
            self._idle.append(self._connection)
        else:
            self._connection.close()


def _connect(url: httpx.URL, timeout: float | None) -> socket.socket:
    try:
        connection = socket.create_connection((url.host, url.port or 80), timeout)
    except TimeoutError as error:
        raise httpx.ConnectTimeout("timed out") from error
    except OSError as error:
        raise httpx.ConnectError(str(error)) from error
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _send(connection: socket.socket, request: httpx.Request) -> None:
    fields = b"".join(b"%s: %s\r\n" % field for field in request.headers.raw)
    head = b"%s %s HTTP/1.1\r\n%s\r\n" % (request.method.encode(), request.url.raw_path, fields)
    is_chunked = "transfer-encoding" in request.headers
    try:
        if is_chunked:
            connection.sendall(head)
            for part in request.stream:
                connection.sendall(b"%x\r\n%s\r\n" % (len(part), part) if part else b"")
            connection.sendall(b"0\r\n\r\n")
        else:
            connection.sendall(head + b"".join(request.stream))
    except (BrokenPipeError, ConnectionResetError):
        return  # the service may have answered before it closed the connection
