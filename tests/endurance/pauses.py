"""The longest pause of the event loop, in production mode: `make pauses REQUESTS=100000`.

Sends at least REQUESTS (100,000) requests and messages of all roles, hostile ones included, over real sockets to a
service with default limits; only the rates per caller and address are off. Prints for each kind the longest pause.

Each millisecond a timer in the served process notes the time since it last ran. `cpu` is the processor time of the
loop's thread in between: the pause that the work itself makes, plus up to a millisecond. `wall` includes the time in
which the machine ran other processes. `gc` is the longest garbage collection, part of both. The target is 50 ms.
"""

from __future__ import annotations

import json
import select
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial

import hostile
from common import CLIENT_ID, SERVER, Address, argument, launch
from crowd import Crowd, Socket, frame
from hostile import HTTP, KIB
from load import is_complete

TARGET = 50.0
"""Milliseconds."""
_DEADLINE = 60.0


class Watched:
    """A server of `servers.py` that reports its pauses, and the table of what was measured."""

    def __init__(self, stack: ExitStack, name: str, *args: object) -> None:
        started, self._process = launch(stack, *SERVER, name, *args)
        self.address = started.address
        self.worst = {"cpu": 0.0, "wall": 0.0, "gc": 0.0}
        self.sent = 0
        print(f"{'kind':44} {'number':>8} {'cpu ms':>8} {'wall ms':>8} {'gc ms':>8}  statuses", flush=True)

    def pauses(self) -> dict[str, float]:
        """Return the longest pauses since the last call, in ms."""
        assert self._process.stdout is not None
        self._process.send_signal(signal.SIGUSR2)
        pauses: dict[str, float] = json.loads(self._process.stdout.readline())
        return pauses

    def measure(self, kind: str, send: Callable[[], int | dict[int, int]]) -> None:
        """Print the longest pauses while `send` sends a number of requests, or numbers by status."""
        self.pauses()
        sent = send()
        pauses = self.pauses()
        statuses = sent if isinstance(sent, dict) else {}
        count = sum(statuses.values()) if isinstance(sent, dict) else sent
        self.sent += count
        self.worst = {name: max(value, pauses[name]) for name, value in self.worst.items()}
        shown = " ".join(f"{status}:{each}" for status, each in sorted(statuses.items()))
        figures = f"{pauses['cpu']:8.1f} {pauses['wall']:8.1f} {pauses['gc']:8.1f}"
        print(f"{kind:44} {count:8} {figures}  {shown}{' !' * (pauses['cpu'] > TARGET)}", flush=True)


class HttpClient:
    """A keep-alive connection that is opened again whenever the service closes it."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self.statuses: dict[int, int] = {}

    def send(self, request: bytes) -> bytes:
        """Send one request and return the body of its response; note its status."""
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=_DEADLINE)
        sending = (
            threading.Thread(target=self._send, args=(self._socket, request)) if len(request) > 128 * KIB else None
        )
        if sending:
            sending.start()
        else:
            self._send(self._socket, request)
        response = self._response(self._socket)
        if sending:
            sending.join()
        head, _, body = response.partition(b"\r\n\r\n")
        status = int(head[9:12] or 0)
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if not status or b"connection: close" in head.lower() or status in (408, 413, 431):
            self._socket.close()
            self._socket = None
        return body

    @staticmethod
    def _send(connection: socket.socket, request: bytes) -> None:
        with suppress(OSError):  # the service has refused the rest
            connection.sendall(request)

    @staticmethod
    def _response(connection: socket.socket) -> bytes:
        """Return a whole response; nothing if the service closed the connection before its end."""
        data = bytearray()
        with suppress(ConnectionError):
            while more := connection.recv(1 << 18):
                data += more
                if is_complete(data):
                    return bytes(data)
        return b""


class SocketClient(Socket):
    """A WebSocket that counts replies, and reads while it sends."""

    def __init__(self, address: Address, path: str = f"/0.2.0/{CLIENT_ID}", role: str = "") -> None:
        super().__init__(address, path=path)
        self.finish_handshake()
        self._buffer = b""
        if role:
            credential = {"client_id": CLIENT_ID, "jwt": hostile.token(role)}
            self.send(hostile.message("authenticate", "", json.dumps(credential).encode()))
            assert b'"errors"' not in self.message()

    def send(self, *texts: bytes) -> None:
        self.send_raw(b"".join(map(frame, texts)))

    def send_raw(self, data: bytes) -> None:
        """Send bytes; read meanwhile, so that neither side waits for the other."""
        view = memoryview(data)
        while view:
            readable, writable, _ = select.select([self._socket], [self._socket], [], _DEADLINE)
            if readable:
                self._read()
            if writable:
                view = view[self._socket.send(view[: 256 * KIB]) :]

    def _read(self) -> None:
        more = self._socket.recv(1 << 20)
        if not more:
            raise ConnectionError("closed")
        self._buffer += more

    def message(self) -> bytes:
        """Return the next text or pong."""
        while True:
            if len(self._buffer) >= 2:
                size, start = self._buffer[1], 2
                if size >= 126:
                    start = 4 if size == 126 else 10
                    size = int.from_bytes(self._buffer[2:start], "big") if len(self._buffer) >= start else 1 << 40
                if len(self._buffer) >= start + size:
                    opcode, text = self._buffer[0], self._buffer[start : start + size]
                    self._buffer = self._buffer[start + size :]
                    if opcode == 0x88:
                        raise ConnectionError("closed")
                    return text
            self._read()

    def replies(self, number: int) -> None:
        """Wait for replies or pongs; skip updates."""
        while number:
            text = self.message()
            number -= b'"action":"update"' not in text[:200]


def http_requests(server: Watched, make: Callable[[], bytes], number: int) -> dict[int, int]:
    client = HttpClient(server.address)
    for _ in range(number):
        client.send(make())
    return client.statuses


def pipelined_requests(server: Watched, number: int) -> int:
    """Send tiny requests, 256 KiB at once, without a credential."""
    one = b"GET /x HTTP/1.1\r\n\r\n"
    done = 0
    while done < number:
        with socket.create_connection(server.address, timeout=_DEADLINE) as connection:
            batch = 256 * KIB // len(one)
            sending = threading.Thread(target=HttpClient._send, args=(connection, one * batch))
            sending.start()
            found = 0
            while found < batch and (data := connection.recv(1 << 20)):
                found += data.count(b"HTTP/1.1 ")
            sending.join()
            done += batch
    return done


def messages(server: Watched, role: str, make: Callable[[], bytes], number: int) -> int:
    """Send socket requests one by one; open another connection whenever the service closes it."""
    client: SocketClient | None = None
    for _ in range(number):
        try:
            client = client or SocketClient(server.address, role=role)
            client.send(make())
            client.replies(1)
        except ConnectionError:
            client = None
    return number


def bursts(server: Watched, role: str, frame: bytes, number: int, *, path: str = f"/0.2.0/{CLIENT_ID}") -> int:
    """Send tiny frames, 256 KiB at once."""
    client, done, batch = SocketClient(server.address, path, role), 0, 256 * KIB // len(frame)
    if path.startswith("/app"):
        client.message()
    while done < number:
        client.send_raw(frame * batch)
        client.replies(batch)
        done += batch
    client.close()
    return done


def queued_messages(server: Watched, number: int) -> int:
    """Send 30 requests of 64 KiB at once."""
    batches = max(1, number // 30)
    for _ in range(batches):
        client = SocketClient(server.address, role="broadcaster")
        with suppress(ConnectionError):  # after ten failed attempts to authenticate
            client.send(*(hostile.large_messages() for _ in range(30)))
            client.replies(30)
        client.close()
    return batches * 30


def publish(server: Watched, subscribers: int, number: int, text: bytes) -> int:
    """Write the channel state while many sockets follow it."""
    login = hostile.message("authenticate", "", b'{"client_id":"bench","jwt":"%s"}' % hostile.TOKENS["viewer"].encode())
    follow = hostile.message("subscribe", "state", b'{"topic_id":"channel"}')
    crowd = Crowd(server.address, subscribers, [login, follow])
    client = HttpClient(server.address)
    server.pauses()
    for index in range(number):
        client.send(
            hostile.http("POST", "channel_state", b'{"n":%d,"x":"%s"}' % (index % 10, text), role="broadcaster")
        )
        crowd.drain()
    crowd.close()
    return number * subscribers


def prepare(server: Watched) -> None:
    """Write what the requests read: full stores, a poll with voters, and 1,000 users with records."""
    client = HttpClient(server.address)
    client.send(hostile.http("POST", "channel_state", hostile.DOCUMENT, role="broadcaster"))
    client.send(hostile.http("POST", "extension_state", b'{"a":"%s"}' % (b"x" * 65_000), role="admin"))
    for bearer in hostile.VIEWERS:
        client.send(hostile.http("POST", "extension_viewer_state", b'{"a":"%s"}' % (b"x" * 64_000), bearer=bearer))
    for user in range(20_000):
        client.send(hostile.http("POST", "vote?id=big", b'{"value":1}', bearer=hostile.token("viewer", user)))
    texts = json.dumps({"name": "n" * 250, "description": "d" * 1_000, "image": "i" * 1_000})[1:-1]
    for question in range(64):
        client.send(hostile.http("POST", "curated_poll", b'{"id":"q%d",%s}' % (question, texts.encode()), role="admin"))
    assert set(client.statuses) <= {200, 400}, client.statuses


def main() -> None:
    number = int(argument(1, 100_000))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        data = sys.argv[2] if len(sys.argv) > 2 else f"sqlite://{folder}/pauses.db"
        server = Watched(stack, "production pauses", data)
        prepare(server)
        measure = server.measure
        weights = sum(weight for weight, _ in HTTP.values())
        for kind, (weight, make) in HTTP.items():
            measure(kind, partial(http_requests, server, make, max(8, round(number * 0.55 * weight / weights))))
        share = max(1, number // 1_000)
        measure("pipelined tiny requests", partial(pipelined_requests, server, 20 * share))
        early = hostile.unauthenticated_messages
        measure("socket: before authentication", partial(messages, server, "", early, 30 * share))
        for role in ("viewer", "broadcaster", "admin"):
            measure(f"socket: small, {role}", partial(messages, server, role, hostile.small_messages, 30 * share))
            measure(f"socket: 64 KiB, {role}", partial(messages, server, role, hostile.large_messages, 6 * share))
        measure("socket: 2 MiB", partial(messages, server, "broadcaster", hostile.huge_messages, 2 * share))
        measure("socket: 64 KiB, 30 at once", partial(queued_messages, server, 3 * share))
        for name, tiny in {"texts": b"\x81\x80\0\0\0\0", "pings": b"\x89\x80\0\0\0\0"}.items():
            for role in ("", "viewer"):
                kind = f"socket: tiny {name}, {role or 'before authentication'}"
                measure(kind, partial(bursts, server, role, tiny, 40 * share))
        ping, page = frame(b'{"event":"pusher:ping"}'), f"/app/{CLIENT_ID}?protocol=7"
        measure("page: pings", partial(bursts, server, "", ping, 20 * share, path=page))
        measure("updates of 64 KiB to 1,000 sockets", partial(publish, server, 1_000, 5, b"x" * 65_000))
        measure("updates of 1 KiB to 2,000 sockets", partial(publish, server, 2_000, 10, b"x" * KIB))
        worst = f"{server.worst['cpu']:.1f} ms cpu, {server.worst['wall']:.1f} ms wall"
        print(f"\n{server.sent} requests and messages; longest pause {worst}")


if __name__ == "__main__":
    main()
