"""The longest hold of the event loop for a request at each limit: `python benchmarks/holds.py`.

Sends requests and frames that are as expensive as their limits allow to a service in production, with the default
limits except the rates. Prints for each how long the loop did nothing else, at most, in ms of processor time. That
includes up to a millisecond between two looks, and garbage collection.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from threading import Thread
from typing import Final

from audience import authentication, authorization
from common import Address, start_service
from crowd import Socket, frame, message
from load import is_complete, request

KIB = 1024
BODY, MAP = 64 * KIB, 4 * KIB * KIB
"""Bytes of a body, and of a map of users."""
REPEATS = 5
BURST = 64 * KIB
"""Bytes of tiny requests or frames that are sent at once."""
_ROLE: Final = "admin"


def http(method: str, path: str, body: bytes = b"", head: str = "") -> bytes:
    """Return a request of an admin of channel 1."""
    return request(method, f"/v1/e/{path}", authorization("1", _ROLE), body, head)


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def array(item: bytes, size: int) -> bytes:
    """Return an array of equal items with about `size` bytes."""
    return b"[" + b",".join([item] * ((size - 2) // (len(item) + 1))) + b"]"


def members(value: bytes, size: int) -> bytes:
    """Return an object of numbered members with about `size` bytes."""
    return b"{" + b",".join(b'"%d":%b' % (number, value) for number in range(size // (len(value) + 9))) + b"}"


_COPY: Final = {"op": "copy", "from": "/list", "path": "/list/-"}
_MOVE: Final = {"op": "move", "from": "/list/0", "path": "/list/19999"}
REQUESTS: Mapping[str, bytes] = {
    "head of many headers": http("GET", "vote", head="a:\r\n" * 15_000),
    "head of one header": http("GET", "vote", head=f"a: {'b' * 60_000}\r\n"),
    "query": http("GET", f"vote?{'a&' * 30_000}"),
    "list of users in a query": http("GET", f"viewer_state?user_ids={','.join(map(str, range(1_000)))}"),
    "body of arrays": http("POST", "channel_state", b'{"a":%b}' % array(b"[]", BODY - 64)),
    "body of members": http("POST", "channel_state", members(b"0", BODY - 64)),
    "body of depth": http("POST", "channel_state", b"[" * BODY),
    "document written": http("POST", "channel_state", compact({"list": [0] * 20_000})),
    "patch of copies": http("PATCH", "channel_state", compact([_COPY] * 40)),
    "patch of moves": http("PATCH", "channel_state", compact([_MOVE] * 999)),
    "patch of arrays": http("PATCH", "channel_state", array(b"5", BODY)),
    "map of 1,000 patches": http("PATCH", "extension_viewer_state", members(b'{"a":"%b"}' % (b"x" * 4_000), MAP)[:MAP]),
    "map of members": http("PATCH", "extension_viewer_state", members(b"[]", MAP)),
    "map of arrays": http("PATCH", "extension_viewer_state", b'{"1":%b}' % array(b"[]", MAP - 64)),
    "broadcast": http("POST", "broadcast", b'{"event":"a","data":"%b"}' % (b"ab" * 32_000)),
    "upload of codes": http(
        "PUT", "codes", compact({"names": ["a"], "codes": [[f"a{number}" for number in range(100_000)]]})
    ),
    "upload of users": http(
        "POST", "codes/mark_from_list", compact({"prizes": [0], "prize_limits": [9], "users": ["1"] * 200_000})
    ),
    "upload of arrays": http("PUT", "codes", b'{"codes":%b}' % array(b"[]", 1_000 * KIB)),
}
"""By name; each has one response."""
MESSAGES: Mapping[str, bytes] = {
    "message of arrays": b'{"action":"set","params":{"request_id":1,"target":"state"},"data":%b}'
    % array(b"[]", MAP // 2 - 128),
    "message of depth": b"[" * (MAP // 2),
}
"""Texts of a socket; each has one reply."""
TINY: Mapping[str, bytes] = {
    "texts": b"\x81\x80\0\0\0\0",
    "pings": b"\x89\x80\0\0\0\0",
    "continuations": b"\x00\x80\0\0\0\0",
}
"""Frames of a socket."""


def exchange(address: Address, sent: bytes) -> bytes:
    """Send one request over a new connection; return its response, or what there is of it if the service closes."""
    with socket.create_connection(address, timeout=60) as connection:
        sending = Thread(target=_send, args=(connection, sent))
        sending.start()
        response = b""
        with suppress(ConnectionError):
            while not is_complete(response) and (more := connection.recv(1 << 18)):
                response += more
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)  # the service may have refused the rest
        sending.join()
    return response


def pipeline(address: Address) -> None:
    """Send tiny requests at once, and read a response to each."""
    one = b"GET /x HTTP/1.1\r\n\r\n"
    with socket.create_connection(address, timeout=60) as connection:
        sending = Thread(target=_send, args=(connection, one * (BURST // len(one))))
        sending.start()
        left, end = BURST // len(one), b""
        while left > 0 and (more := connection.recv(1 << 18)):
            left -= (end + more).count(b"HTTP/1.1 ")
            end = more[-8:]
        sending.join()


def talk(address: Address, sent: bytes) -> list[bytes]:
    """Send bytes over a new authenticated socket, then a last request.

    Return the texts and pongs up to its reply, or until the service closes the connection.
    """
    found: list[bytes] = []
    client = Socket(address)
    client.finish_handshake()
    client.send(authentication(_ROLE))
    assert b"errors" not in client.message()
    sending = Thread(target=_send, args=(client, sent + frame(message("last"))))
    sending.start()
    with suppress(ConnectionError, IndexError):  # the service closed the connection
        while not found or b'"last"' not in found[-1]:
            found.append(client.message())
    client.close()
    sending.join()
    return found


def _send(connection: socket.socket | Socket, data: bytes) -> None:
    with suppress(OSError):  # the service has refused the rest
        connection.sendall(data)


def longest(process: subprocess.Popen[str]) -> float:
    """Return the longest hold since the last call, in ms of processor time."""
    assert process.stdout is not None
    process.send_signal(signal.SIGUSR2)
    return float(process.stdout.readline())


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        address, process = start_service(stack, f"sqlite://{folder}/data.db", name="watched")
        exchange(address, REQUESTS["document written"])
        kinds: dict[str, Callable[[], object]] = {
            **{name: partial(exchange, address, each) for name, each in REQUESTS.items()},
            "pipelined requests": partial(pipeline, address),
            **{name: partial(talk, address, frame(each)) for name, each in MESSAGES.items()},
            **{f"tiny {name}": partial(talk, address, each * (BURST // len(each))) for name, each in TINY.items()},
        }
        for name, send in kinds.items():
            longest(process)
            for _ in range(REPEATS):
                send()
            print(f"{name:26} {longest(process):6.1f} ms", flush=True)


if __name__ == "__main__":
    main()
