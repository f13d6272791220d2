"""An HTTP call as an endpoint sees it: caller, query parameters and body."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from emulator.callers import Caller
from emulator.contract.limits import MAX_ID_LENGTH
from emulator.limits.listing_pages import DEFAULT_PAGE, Page, checked_page
from emulator.wire import json_codec
from emulator.wire.refusals import invalid_parameter
from emulator.wire.text import checked_text

T = TypeVar("T")

_INTEGER = re.compile(r"-?[0-9]{1,1000}")


@dataclass(slots=True, eq=False, repr=False)
class Call:
    """A call whose credential, role and body size have been checked."""

    _caller: Caller | None
    _query: Mapping[str, str]
    raw: bytes
    """The whole body; empty if the endpoint streams it from `chunks`."""
    peer: str
    """The client's IP address; empty if unknown."""
    client_id: str
    """The header's client id, for endpoints that require no token; empty if absent."""
    check_registered: Callable[[str], object]
    """Raises `Unauthorized` for a client id that is not accepted."""
    chunks: AsyncIterator[bytes]
    """The body as a stream; iterating may raise `TooLarge` or `BadRequest`."""
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    """By lower-case name; the last of duplicate headers."""

    @property
    def caller(self) -> Caller:
        """The authenticated caller; only for endpoints that require a token."""
        assert self._caller is not None, "this endpoint requires no token, so it has no caller"
        return self._caller

    @property
    def has_caller(self) -> bool:
        return self._caller is not None

    @property
    def id(self) -> str:
        """The query parameter `id`; `default` if absent or empty."""
        return self._query.get("id") or "default"

    @property
    def channel(self) -> str | None:
        """The channel that the call acts on; `None` for all channels together (ruling A4)."""
        caller, requested = self.caller, self._query.get("channel_id", "")
        if requested and caller.spans_channels:
            checked_text(requested, MAX_ID_LENGTH, reason="Malformed channel_id parameter", name="channel_id")
        return caller.channel(requested)

    @property
    def query(self) -> Mapping[str, str]:
        """All query parameters by name."""
        return self._query

    def text(self, name: str) -> str:
        """A query parameter; empty if absent."""
        return self._query.get(name, "")

    def integer(self, name: str, default: int) -> int:
        """An integer query parameter; `default` if absent or empty. Raises `BadRequest` for anything else."""
        text = self._query.get(name, "")
        if not text:
            return default
        if not _INTEGER.fullmatch(text):
            raise invalid_parameter(name, text, "an integer")
        return int(text)

    @property
    def page(self) -> Page:
        """The page of a listing, from the parameters `limit` and `cursor`. Raises `BadRequest`."""
        return checked_page(self.integer("limit", DEFAULT_PAGE), self.text("cursor"))

    def body(self, shape: type[T]) -> T:
        """The body decoded as `shape`; raises `BadRequest` naming the invalid field."""
        return json_codec.decode(self.raw, shape)

    def any_body(self) -> Any:
        """The body decoded as any JSON; raises `BadRequest` if it is not JSON."""
        return json_codec.decode_any(self.raw)


def checked_id(text: str, name: str) -> str:
    """Return a valid id of a buffer or JSON store; raises `BadRequest` naming the parameter `name`."""
    return checked_text(text, MAX_ID_LENGTH, reason=f"Invalid {name}", name=name)
