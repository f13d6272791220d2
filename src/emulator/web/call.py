"""One call, as an endpoint sees it: who asks, what the query says, what the body says."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

from emulator.callers import Caller
from emulator.errors import BadRequest
from emulator.wire import json_codec

T = TypeVar("T")

LONGEST_ID = 64
"""Characters in the id of a poll, buffer or JSON store (ruling W8)."""


_INTEGER = re.compile(r"-?[0-9]{1,1000}")


class Call:
    """A call whose credential, role and body size have been checked."""

    __slots__ = ("_caller", "_query", "check_registered", "chunks", "client_id", "peer", "raw")

    def __init__(
        self,
        caller: Caller | None,
        query: Mapping[str, str],
        raw: bytes,
        peer: str,
        client_id: str,
        check_registered: Callable[[str], None],
        chunks: AsyncIterator[bytes],
    ) -> None:
        self._caller = caller
        self.client_id = client_id
        """That of the header, where an endpoint needs no more; empty when there is none."""
        self.check_registered = check_registered
        """Raises `Unauthorized` for a client id that the service does not take."""
        self._query = query
        self.raw = raw
        """The body as it came; empty where it is left to be read from `chunks`."""
        self.chunks = chunks
        """The body as it comes, where the endpoint is declared so. Raises `TooLarge` or `BadRequest` on the way."""
        self.peer = peer
        """The address of the other side; empty when unknown."""

    @property
    def caller(self) -> Caller:
        """Who asks. An endpoint that is open to the unknown must not look."""
        assert self._caller is not None, "an open endpoint has no caller"
        return self._caller

    @property
    def has_caller(self) -> bool:
        """Whether a token says who asks."""
        return self._caller is not None

    @property
    def id(self) -> str:
        """The query parameter `id`; `default` when absent or empty."""
        return self._query.get("id") or "default"

    @property
    def channel(self) -> str | None:
        """The channel this call is about, `None` for all channels together (ruling A4)."""
        asked = self._query.get("channel_id", "")
        if asked and self.caller.spans_channels and (len(asked) > LONGEST_ID or not asked.isprintable()):
            raise BadRequest("Malformed channel_id parameter", f"channel_id: at most {LONGEST_ID} printable characters")
        return self.caller.channel(asked)

    def text(self, name: str) -> str:
        """A query parameter; empty when absent."""
        return self._query.get(name, "")

    def integer(self, name: str, default: int) -> int:
        """A query parameter that is an integer; `default` when absent or empty."""
        text = self._query.get(name, "")
        if not text:
            return default
        if not _INTEGER.fullmatch(text):
            raise BadRequest(f"Malformed {name} parameter", f"{name}: {text[:40]!r} is not an integer")
        return int(text)

    def body(self, shape: type[T]) -> T:
        """The body, read as `shape`; raises `BadRequest` naming the field that does not fit."""
        return json_codec.decode(self.raw, shape)

    def any_body(self) -> Any:
        """The body, any JSON."""
        return json_codec.decode_any(self.raw)


def checked_id(text: str, what: str) -> str:
    """An id of a buffer or JSON store: 1 to 64 printable characters, or `BadRequest` naming `what`."""
    if not text or len(text) > LONGEST_ID or not text.isprintable():
        raise BadRequest(f"Invalid {what}", f"{what}: 1 to {LONGEST_ID} printable characters")
    return text
