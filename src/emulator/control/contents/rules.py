"""Lists of stored records: their kinds, rows and cursors. No I/O."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.engines.shapes import NEVER, Expired, Key
from emulator.wire import json_codec
from emulator.wire.cursors import cursor_of, place_of
from emulator.wire.refusals import invalid_parameter

MAX_ROWS: Final = 200
DEFAULT_ROWS: Final = 100
MAX_COUNT: Final = 10_000
"""The highest count. There may be more."""
_DIGEST_LENGTH: Final = 16
"""Characters of a PIN's digest that are shown."""
_decode: Final = msgspec.json.Decoder(tuple[str, str, str, str, str]).decode
_PAST_ALL: Final = "\U0010ffff"
"""Sorts after every channel."""


class Content(Struct, kw_only=True):
    """One stored record. Never a PIN and never a code."""

    id: str
    """The id; of a store, its name; of a code set, its index; of a PIN, the start of its digest."""
    client_id: str
    """Empty for a store that all extensions in the channel share."""
    channel_id: str
    """Empty for a thing of no channel."""
    user: str | UnsetType = UNSET
    """The opaque id of the user of a viewer store; of a purchase, the buyer."""
    name: str | UnsetType = UNSET
    """The name of a code set; of a purchase, the product."""
    status: str | UnsetType = UNSET
    """Of a poll: `pending`, `active` or `expired`. Of a PIN: `bound` to a channel or `unbound`."""
    disabled: bool | UnsetType = UNSET
    """Present for a poll that refuses votes, whatever its status."""
    count: int | UnsetType = UNSET
    """Votes, answers or entries; of a code set, the codes that were handed out."""
    left: int | UnsetType = UNSET
    """The codes of a set that were not reached yet."""
    size: int | UnsetType = UNSET
    """Bytes of a store, of a channel's links, or of the questions of an extension."""
    latest: int
    """Unix ms of the latest change; 0 if unknown."""
    expires_at: int | None
    """Unix ms; null if it does not expire."""


class ContentPage(Struct):
    """A page of stored records, sorted by client id, then by channel and id, or by id and channel, depending on the
    kind.
    """

    rows: list[Content]
    next: str
    """The cursor of the next page; `0` if there is none."""


class Coming(Struct):
    """A record that will expire, in the form that a move of the clock reports."""

    kind: str
    id: str
    at: int
    """In Unix ms. Of a buffer, when the next of its entries expires."""
    client_id: str
    channel_id: str


class ComingExpiries(Struct):
    """The coming expiries, soonest first."""

    now: int
    """The service's time in Unix ms."""
    next: list[Coming]


class Filter(NamedTuple):
    """The filters of a list; empty for all."""

    client_id: str = ""
    channel_id: str = ""
    search: str = ""
    """A text that the id, channel or user contains."""


def checked_rows(limit: int) -> int:
    """Return the limit; raise `BadRequest` unless it is 1 to 200."""
    if not 1 <= limit <= MAX_ROWS:
        raise invalid_parameter("limit", limit, f"within 1 to {MAX_ROWS}")
    return limit


def cursor_after(last: Key) -> str:
    """Return the cursor of the page after this key."""
    return cursor_of(json_codec.encode(last))


def cursor_after_owner(kind: str, owner: str) -> str:
    """Return the cursor of a page that begins after all records of an owner."""
    return cursor_after(Key(kind, owner, "", _PAST_ALL))


def key_after_cursor(cursor: str) -> Key | None:
    """Return the key after which a page starts; `None` for the first page. Raises `BadRequest`."""
    members = place_of(cursor, _decode)
    return Key(*members) if members else None


def latest_change(expires_at: int, lifetime: int) -> int:
    """Return the Unix ms of the latest change of a record with this expiry; 0 if unknown."""
    return 0 if NEVER in (expires_at, lifetime) else max(0, expires_at - lifetime)


def coming(expiry: Expired, secret: Collection[str]) -> Coming:
    """Return an expiry as the API shows it. `secret` has the kinds of keys whose names are not shown."""
    key = expiry.key
    name = digest_of(key) if key.kind in secret else key.name or key.user or key.channel or key.owner
    return Coming(key.kind, name, expiry.at, key.owner, key.channel or "")


def digest_of(pin: Key) -> str:
    """Return the start of a PIN's digest, which identifies the PIN and does not reveal it."""
    return pin.name[:_DIGEST_LENGTH]
