"""Adds faults to a service, and connects to it without an HTTP client that hides them."""

from __future__ import annotations

import json
import socket
from typing import Any, Self

from support.service import Client, RunningService

TIMEOUT = 10.0
"""Seconds to wait for the service."""
SILENCE = 0.2
"""Seconds in which a service without faults would answer."""

Fault = dict[str, Any]


def add_fault(service: RunningService, match: str, effect: str, **members: object) -> Fault:
    """Add a fault, and return it as the service has it."""
    with Client(base_url=service.url) as client:
        body = {"match": match, "effect": effect, **members}
        return dict(client.post("/_emulator/faults", json=body).raise_for_status().json())


def faults_of(service: RunningService) -> list[Fault]:
    """Return all faults, oldest first."""
    with Client(base_url=service.url) as client:
        return list(client.get("/_emulator/faults").raise_for_status().json()["faults"])


def hits_of(service: RunningService) -> list[int]:
    """Return the hits of each fault."""
    return [fault["hits"] for fault in faults_of(service)]


def remove_faults(service: RunningService, **query: str) -> int:
    """Remove one fault or all, and return how many there were."""
    with Client(base_url=service.url) as client:
        return int(client.delete("/_emulator/faults", params=query).raise_for_status().json()["removed"])


class RawClient:
    """A TCP connection that sends requests, and reads bytes until the end."""

    def __init__(self, service: RunningService) -> None:
        self.socket = service.connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.socket.close()

    def send(self, client: Client, method: str, path: str, body: object = None) -> None:
        """Send a request with the credential of a client; `path` is whole."""
        self.socket.sendall(_request(client, method, path, body))

    def send_together(self, client: Client, path: str, *requests: tuple[str, object]) -> None:
        """Send several requests, each a method and a body, in one packet: none arrives after the connection closed."""
        self.socket.sendall(b"".join(_request(client, method, path, body) for method, body in requests))

    def send_head(self, client: Client, method: str, path: str, size: int) -> None:
        """Send a request up to its body of `size` bytes."""
        self.socket.sendall(_head(client, method, path, size))

    def handshake(self, path: str) -> None:
        """Send the handshake of a WebSocket."""
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )

    def rest(self) -> bytes:
        """Read until the service closes the connection. Raises `ConnectionResetError` after a reset."""
        parts = []
        while part := self.socket.recv(65_536):
            parts.append(part)
        return b"".join(parts)

    def answer(self) -> tuple[int, bytes]:
        """Read one response, and return its status and body."""
        with self.socket.makefile("rb") as file:
            status = int(file.readline().split()[1])
            length = 0
            while (line := file.readline().strip()) != b"":
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            return status, file.read(length)

    def is_silent(self) -> bool:
        """Return whether the connection is open and nothing arrives."""
        self.socket.settimeout(SILENCE)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(TIMEOUT)
        return False


def _request(client: Client, method: str, path: str, body: object) -> bytes:
    text = b"" if body is None else json.dumps(body).encode()
    return _head(client, method, path, len(text)) + text


def _head(client: Client, method: str, path: str, size: int) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n"
    return f"{head}Authorization: {client.headers['authorization']}\r\n\r\n".encode()


def status_of_vote(client: Client, value: int = 1) -> int:
    """Vote in the poll `rps`, and return the status of the response."""
    return client.post("vote", params={"id": "rps"}, json={"value": value}).status_code
