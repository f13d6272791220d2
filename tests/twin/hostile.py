"""Requests that no client should send: odd methods and paths, doubled headers, other framing, and raw bytes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twin.calls import Call

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "get", "PROPFIND"]
HEADERS = [
    "Content-Type: application/x-www-form-urlencoded", "Content-Type: application/json; charset=utf-16",
    "Content-Type: text/plain", "Content-Type: multipart/form-data; boundary=x", "Content-Encoding: gzip",
    "Accept-Encoding: gzip", "Accept: text/html", "Origin: https://page.example", "Origin: null",
    "Authorization: second value", "X-Request-Id: chosen-by-the-client", "X-Request-Id: é", "Expect: 100-continue",
    "X-Forwarded-For: 203.0.113.9, 192.0.2.9", "X-Forwarded-Proto: https", "If-None-Match: *", "Range: bytes=0-1",
    "Upgrade: websocket", "Connection: close", "X-Http-Method-Override: DELETE", "Cookie: a=b", "Forwarded: for=1",
    "X-Emulator-Explain: 1", "Access-Control-Request-Method: POST", "Authorization:", "TE: trailers",
]  # fmt: skip


def odd(chosen: random.Random, method: str, path: str) -> tuple[str, str, list[str]]:
    """Return another method, path and headers; not all of them at once."""
    kind = chosen.randrange(4)
    if kind == 0:
        return chosen.choice(METHODS), path, []
    if kind == 1:
        changed = [f"{path}/", f"/{path}", f"{path}/x", path.upper(), f"./{path}", f"{path}%20",
                   f"{path[:-1]}%{ord(path[-1]):02x}", path.replace("_", "-"), f"{path};a=b", "nothing",
                   f"../e/{path}", f"{path}%2F"]  # fmt: skip
        return method, chosen.choice(changed), []
    return method, path, chosen.sample(HEADERS, chosen.choice([1, 1, 2]))


def chunked(chosen: random.Random, head: str, body: bytes) -> list[bytes]:
    """Return a request whose body is sent in chunks."""
    at = chosen.randrange(len(body) + 1)
    pieces = [piece for piece in (body[:at], body[at:]) if piece]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return [head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"]


def raw(chosen: random.Random, header: str, prefix: str) -> Call:
    """Return bytes that are hardly HTTP, or several requests at once."""
    from twin.calls import Call

    vote = f"{prefix}/v1/e/vote?id=rps"
    line = f"POST {vote} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {header}\r\n"
    whole = f'{line}Content-Length: 11\r\n\r\n{{"value":1}}'
    read = f"GET {vote} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {header}\r\n\r\n"
    if chosen.random() < 0.4:
        number = chosen.randrange(2, 5)
        several = "".join(chosen.choice([whole, read]) for _ in range(number))
        return Call("POST /v1/e/vote", [several.encode()], f"{number} pipelined", repeats=number)
    broken = [
        f'{line}Content-Length: 5\r\nContent-Length: 11\r\n\r\n{{"value":1}}',
        f'{line}Content-Length: -1\r\n\r\n{{"value":1}}',
        f'{line}Content-Length: x\r\n\r\n{{"value":1}}',
        f"{line}Content-Length: 99999999999\r\n\r\n",
        f'{line}Transfer-Encoding: chunked\r\nContent-Length: 11\r\n\r\n5\r\n{{"val\r\n0\r\n\r\n',
        f"{line}Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        f"{line}Transfer-Encoding: gzip\r\n\r\n",
        f"POST {vote}\r\n\r\n",
        f"POST {vote} HTTP/9.9\r\n\r\n",
        f"POST  {vote}  HTTP/1.1\r\nHost: localhost\r\n\r\n",
        f"POST http://other.example{vote} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        f"GET {vote} HTTP/1.0\r\nAuthorization: {header}\r\n\r\n",
        f"GET {vote} HTTP/1.1\r\nAuthorization: {header}\r\n\r\n",
        f"GET {vote} HTTP/1.1\r\nHost: localhost\r\n folded\r\nAuthorization: {header}\r\n\r\n",
        f"GET {vote} HTTP/1.1\r\nHost: localhost\r\nNo colon\r\n\r\n",
        f"GET {vote} HTTP/1.1\r\nHost: localhost\r\nX: {'y' * 70_000}\r\n\r\n",
        f"GET /{'x' * 70_000} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        f"GET {vote}&a=\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        f"GET {vote} HTTP/1.1\r\nHost: evil.example\r\nAuthorization: {header}\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00",
        "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        f"{line}Content-Length: 70000\r\n\r\n{' ' * 70_000}",
    ]
    at = chosen.randrange(len(broken))
    return Call("raw bytes", [broken[at].encode("latin-1", "replace")], f"broken request {at}", is_last=True)
