"""The longest pause of the event loop, in production mode: `python benchmarks/pauses.py [REQUESTS] [DATA]`.

Sends at least REQUESTS (100,000) requests and messages of all roles, hostile ones included, over real sockets to a
service with default limits; only the rates per caller and address are off. Prints for each kind the longest pause.

Each millisecond a timer in the served process notes the time since it last ran. `cpu` is the processor time of the
loop's thread in between: the pause that the work itself makes, plus up to a millisecond. `wall` includes the time in
which the machine ran other processes. `gc` is the longest garbage collection, part of both. The target is 50 ms.
"""

from __future__ import annotations

import asyncio
import gc
import json
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import hostile
import uvloop
from common import Address
from crowd import Crowd
from hostile import HTTP, KIB
from servers import CLIENT_ID, SECRET

TARGET = 50.0
"""Milliseconds."""
_DEADLINE = 60.0


class Pauses:
    """In the served process: a timer that notes how long the loop did not run it. Times are in ns."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._wall, self._cpu = time.perf_counter_ns(), time.thread_time_ns()
        self.longest = {"cpu": 0, "wall": 0, "gc": 0}
        gc.callbacks.append(self._note_collection)
        self._beat()

    def _beat(self) -> None:
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        self.longest["wall"] = max(self.longest["wall"], wall - self._wall - 1_000_000)
        self.longest["cpu"] = max(self.longest["cpu"], cpu - self._cpu)
        self._wall, self._cpu = wall, cpu
        self._loop.call_later(0.001, self._beat)

    def _note_collection(self, phase: str, _: object) -> None:
        now = time.thread_time_ns()
        if phase == "start":
            self._collection = now
        else:
            self.longest["gc"] = max(self.longest["gc"], now - self._collection)

    def report(self) -> None:
        """Print the longest pauses since the last report."""
        print(json.dumps(self.longest), flush=True)
        self.longest = dict.fromkeys(self.longest, 0)


def serve(data: str) -> None:
    """Serve, and report the pauses for each line of standard input."""
    from emulator.config.environment import PRODUCTION, AnonymousLimits
    from emulator.config.extensions import Extension
    from emulator.config.settings import Limits, Settings
    from emulator.process import run
    from emulator.process.http_server import listen, url_of
    from emulator.process.signals import HANGUPS, SignalHandler

    limits = Limits(caller_rate=0, client_rate=0, anonymous=AnonymousLimits())
    extension = Extension(CLIENT_ID, secrets=(SECRET,))
    settings = Settings(environment=PRODUCTION, data=data, extensions={CLIENT_ID: extension}, limits=limits)
    listener = listen("127.0.0.1", 0)

    def started() -> None:
        loop = asyncio.get_running_loop()
        pauses = Pauses(loop)

        def report_on_request() -> None:
            for _ in sys.stdin:
                loop.call_soon_threadsafe(pauses.report)

        threading.Thread(target=report_on_request, daemon=True).start()
        print(url_of("127.0.0.1", listener), flush=True)

    uvloop.run(run.serve(settings, listener, started, SignalHandler(*HANGUPS)))


class Server:
    """The served process."""

    def __init__(self, stack: ExitStack, data: str, script: str = __file__) -> None:
        command = [sys.executable, script, "serve", data]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(self._process.wait, 20)
        stack.callback(self._process.terminate)
        assert self._process.stdout is not None
        url = urlsplit(self._process.stdout.readline())
        assert url.port, "the service did not start"
        self.address: Address = (str(url.hostname), url.port)

    def pauses(self) -> dict[str, float]:
        """Return the longest pauses since the last call, in ms."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return {name: value / 1e6 for name, value in json.loads(self._process.stdout.readline()).items()}


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
        head, body = self._response(self._socket)
        if sending:
            sending.join()
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
    def _response(connection: socket.socket) -> tuple[bytes, bytes]:
        data = b""
        try:
            while b"\r\n\r\n" not in data:
                if not (more := connection.recv(1 << 16)):
                    return b"", b""
                data += more
            head, _, body = data.partition(b"\r\n\r\n")
            lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            pieces = [body]
            if b"content-length" in lines:
                left = int(lines[b"content-length"]) - len(body)
                while left > 0:
                    pieces.append(connection.recv(1 << 18))
                    left -= len(pieces[-1])
            else:
                while not b"".join(pieces[-2:]).endswith(b"0\r\n\r\n"):
                    pieces.append(connection.recv(1 << 18))
            return head, b"".join(pieces)
        except ConnectionError:
            return b"", b""


class SocketClient:
    """A WebSocket that counts replies."""

    def __init__(self, address: Address, path: str = f"/0.2.0/{CLIENT_ID}", role: str = "") -> None:
        self._socket = socket.create_connection(address, timeout=_DEADLINE)
        self._socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._socket.recv(1)
        assert head.startswith(b"HTTP/1.1 101"), head
        self._buffer = b""
        if role:
            credential = {"client_id": CLIENT_ID, "jwt": hostile.token(role)}
            self.send(hostile.message("authenticate", "", json.dumps(credential).encode()))
            assert b'"errors"' not in self.message()

    @staticmethod
    def frame(text: bytes, opcode: int = 0x81) -> bytes:
        size = len(text)
        length = (
            bytes([0x80 | size])
            if size < 126
            else b"\xfe" + size.to_bytes(2, "big")
            if size < 65_536
            else (b"\xff" + size.to_bytes(8, "big"))
        )
        return bytes([opcode]) + length + b"\0\0\0\0" + text

    def send(self, *texts: bytes) -> None:
        self.send_raw(b"".join(map(self.frame, texts)))

    def send_raw(self, data: bytes) -> None:
        """Send bytes; read meanwhile, so that neither side waits for the other."""
        view = memoryview(data)
        while view:
            readable, writable, _ = select.select([self._socket], [self._socket], [], _DEADLINE)
            if readable:
                self._receive()
            if writable:
                view = view[self._socket.send(view[: 256 * KIB]) :]

    def _receive(self) -> None:
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
            self._receive()

    def replies(self, number: int) -> None:
        """Wait for replies or pongs; skip updates."""
        while number:
            text = self.message()
            number -= b'"action":"update"' not in text[:200]

    def close(self) -> None:
        self._socket.close()


def http_requests(server: Server, make: Callable[[], bytes], number: int) -> dict[int, int]:
    client = HttpClient(server.address)
    for _ in range(number):
        client.send(make())
    return client.statuses


def pipelined_requests(server: Server, number: int) -> int:
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


def messages(server: Server, role: str, make: Callable[[], bytes], number: int) -> int:
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


def bursts(server: Server, role: str, frame: bytes, number: int, *, path: str = f"/0.2.0/{CLIENT_ID}") -> int:
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


def queued_messages(server: Server, number: int) -> int:
    """Send 30 requests of 64 KiB at once."""
    batches = max(1, number // 30)
    for _ in range(batches):
        client = SocketClient(server.address, role="broadcaster")
        with suppress(ConnectionError):  # after ten failed attempts to authenticate
            client.send(*(hostile.large_messages() for _ in range(30)))
            client.replies(30)
        client.close()
    return batches * 30


def publish(server: Server, subscribers: int, number: int, text: bytes) -> int:
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
        before = -1
        while (received := sum(each.received for each in crowd.sockets)) != before or not crowd.is_idle():
            before = received
            for descriptor, _ in crowd._poll.poll(0.05, len(crowd.sockets)):
                crowd._by_descriptor[descriptor].receive()
    crowd.close()
    return number * subscribers


def prepare(server: Server) -> None:
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
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        server = Server(stack, sys.argv[2] if len(sys.argv) > 2 else f"sqlite:///{Path(folder) / 'pauses.db'}")
        prepare(server)
        overall = {"cpu": 0.0, "wall": 0.0, "gc": 0.0}
        total = 0
        print(f"{'kind':44} {'number':>8} {'cpu ms':>8} {'wall ms':>8} {'gc ms':>8}  statuses", flush=True)

        def measure(kind: str, send: Callable[[], int | dict[int, int]]) -> None:
            nonlocal total
            server.pauses()
            sent = send()
            pauses = server.pauses()
            count = sum(sent.values()) if isinstance(sent, dict) else sent
            total += count
            for name, value in pauses.items():
                overall[name] = max(overall[name], value)
            shown = (
                " ".join(f"{status}:{each}" for status, each in sorted(sent.items())) if isinstance(sent, dict) else ""
            )
            mark = " !" if pauses["cpu"] > TARGET else ""
            print(
                f"{kind:44} {count:8} {pauses['cpu']:8.1f} {pauses['wall']:8.1f} {pauses['gc']:8.1f}  {shown}{mark}",
                flush=True,
            )

        weights = sum(weight for weight, _ in HTTP.values())
        for kind, (weight, make) in HTTP.items():
            each = max(8, round(number * 0.55 * weight / weights))
            measure(kind, lambda make=make, each=each: http_requests(server, make, each))
        share = max(1, number // 1_000)
        measure("pipelined tiny requests", lambda: pipelined_requests(server, 20 * share))
        measure(
            "socket: before authentication", lambda: messages(server, "", hostile.unauthenticated_messages, 30 * share)
        )
        for role in ("viewer", "broadcaster", "admin"):
            measure(
                f"socket: small, {role}", lambda role=role: messages(server, role, hostile.small_messages, 30 * share)
            )
            measure(
                f"socket: 64 KiB, {role}", lambda role=role: messages(server, role, hostile.large_messages, 6 * share)
            )
        measure("socket: 2 MiB", lambda: messages(server, "broadcaster", hostile.huge_messages, 2 * share))
        measure("socket: 64 KiB, 30 at once", lambda: queued_messages(server, 3 * share))
        for name, frame in {"texts": b"\x81\x80\0\0\0\0", "pings": b"\x89\x80\0\0\0\0"}.items():
            for role in ("", "viewer"):
                measure(
                    f"socket: tiny {name}, {role or 'before authentication'}",
                    lambda frame=frame, role=role: bursts(server, role, frame, 40 * share),
                )
        ping = SocketClient.frame(b'{"event":"pusher:ping"}')
        page = f"/app/{CLIENT_ID}?protocol=7"
        measure("page: pings", lambda: bursts(server, "", ping, 20 * share, path=page))
        measure("updates of 64 KiB to 1,000 sockets", lambda: publish(server, 1_000, 5, b"x" * 65_000))
        measure("updates of 1 KiB to 2,000 sockets", lambda: publish(server, 2_000, 10, b"x" * KIB))
        print(
            f"\n{total} requests and messages; longest pause {overall['cpu']:.1f} ms cpu, {overall['wall']:.1f} ms wall"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2])
    else:
        main()
