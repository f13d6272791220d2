"""Reads from an HTTP answer only what a crowd needs: its end, its status and `Retry-After`. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from extcli.api.bodies import CROWD
from extcli.api.retry import RATE_LIMITED, UNAVAILABLE

_END = b"\r\n\r\n"
_LENGTH = b"\r\ncontent-length:"
_LARGEST_HEAD = 1 << 16
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[^\r\n]*\r\n")


class Head(NamedTuple):
    """What the head of an answer says."""

    status: int
    size: int
    """Bytes of the whole answer, -1 for chunks, -2 for all until the connection is closed."""
    body_at: int
    closes: bool
    """Whether the service closes the connection after this answer."""
    retry_after: bytes | None
    """The header `Retry-After` of 429 and 503."""


def head_of(data: bytes) -> Head | None:
    """Parse the head of an answer, or return `None` if more bytes are needed. Raises `ValueError`."""
    end = data.find(_END)
    if not data.startswith(b"HTTP/1.") and (end >= 0 or not b"HTTP/1.".startswith(data)):
        raise ValueError("not HTTP/1.1")
    if end < 0:
        if len(data) > _LARGEST_HEAD:
            raise ValueError("the head is too large")
        return None
    head = data[:end].lower()
    status = int(head[9:12])
    if status < 100:
        raise ValueError("not a status")
    body_at = end + 4
    closes = b"\r\nconnection: close" in head or head.startswith(b"http/1.0")
    start = head.find(_LENGTH)
    if start >= 0:
        start += len(_LENGTH)
        stop = head.find(b"\r", start)
        size = body_at + int(head[start : stop if stop >= 0 else end])
    elif status in (204, 304) or status < 200:
        size = body_at
    elif b"\r\ntransfer-encoding: chunked" in head:
        size = -1
    else:
        size, closes = -2, True
    return Head(status, size, body_at, closes, _retry_after(head) if status in (RATE_LIMITED, UNAVAILABLE) else None)


def is_complete(data: bytes, head: Head, *, ended: bool = False) -> bool:
    """Return whether an answer ends here. `ended` says that the service has closed the connection.

    Raises `ValueError` for an answer that is too large.
    """
    if max(len(data), head.size) > CROWD:
        raise ValueError("the answer is too large")
    if head.size == -1:
        return data.endswith(_LAST_CHUNK) or data[head.body_at :] == _LAST_CHUNK[2:]
    return ended if head.size == -2 else len(data) >= head.size


def body_of(data: bytes, head: Head) -> bytes:
    """Return the body of a complete answer; up to the first chunk that is not valid."""
    if head.size != -1:
        return data[head.body_at :]
    parts, at = [], head.body_at
    while (found := _CHUNK.match(data, at)) and (size := int(found[1], 16)):
        parts.append(data[found.end() : found.end() + size])
        at = found.end() + size + 2
    return b"".join(parts)


def _retry_after(head: bytes) -> bytes | None:
    _, found, rest = head.partition(b"\r\nretry-after:")
    return rest.partition(b"\r")[0].strip() if found else None
