"""Which stores there are, who may do what with them, where each is kept, and how large it may grow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from emulator.callers import ANYONE, CHANNEL_WRITERS, EXTENSION_WRITERS, Caller, Role
from emulator.clock import DAY
from emulator.engines.base import Key
from emulator.errors import BadRequest
from emulator.wire import json_codec

LARGEST = 64 * 1024
"""Bytes of compact JSON in a store after a write (ruling S4)."""
MOST_USERS = 1_000
"""How many users one call of an admin may read or patch (ruling S1)."""
JSON_STORE_LARGEST = 2 * 1024
JSON_STORE_LIFETIME = 14 * DAY

_CHANNEL_ID = re.compile(r"\d+")
_USER_ID = re.compile(r"[0-9A-Za-z_-]*\d")


@dataclass(frozen=True)
class Store:
    """One kind of store: a line of the specification's storage table with its rulings."""

    name: str
    """The last segment of its path."""
    per_extension: bool = True
    """Kept apart for each client id. A store that is not is one for all extensions in the channel (ruling S6)."""
    per_channel: bool = False
    per_viewer: bool = False
    is_config: bool = False
    """Config lives longer than state."""
    readers: frozenset[Role] = ANYONE
    writers: frozenset[Role] = ANYONE
    feed_id: str = ""
    """What the socket calls it, as state or config: `channel` or `extension`. Empty for one it does not reach."""

    @property
    def has_feed(self) -> bool:
        """Whether the socket's clients can subscribe to it."""
        return bool(self.feed_id)

    @property
    def takes_maps(self) -> bool:
        """Whether an admin may patch many records at once: users' own stores, and channels' config."""
        return self.per_viewer or (self.per_channel and self.is_config)


EXTENSION_STATE: Final = Store("extension_state", writers=EXTENSION_WRITERS, feed_id="extension")
CHANNEL_STATE: Final = Store(
    "channel_state", per_extension=False, per_channel=True, writers=CHANNEL_WRITERS, feed_id="channel"
)
VIEWER_STATE: Final = Store("viewer_state", per_channel=True, per_viewer=True)
EXTENSION_VIEWER_STATE: Final = Store("extension_viewer_state", per_viewer=True)
HIDDEN_STATE: Final = Store("extension_hidden_state", readers=EXTENSION_WRITERS, writers=EXTENSION_WRITERS)
EXTENSION_CONFIG: Final = Store("extension_config", is_config=True, writers=EXTENSION_WRITERS, feed_id="extension")
CHANNEL_CONFIG: Final = Store(
    "channel_config",
    per_extension=False,
    per_channel=True,
    is_config=True,
    writers=CHANNEL_WRITERS,
    feed_id="channel",
)
STORES: Final = (
    EXTENSION_STATE,
    CHANNEL_STATE,
    VIEWER_STATE,
    EXTENSION_VIEWER_STATE,
    HIDDEN_STATE,
    EXTENSION_CONFIG,
    CHANNEL_CONFIG,
)


def key_of(store: Store, caller: Caller, channel: str | None, *, viewer: str = "", apart: bool = False) -> Key:
    """Where a store is kept. Raises `BadRequest` for a channel-scoped store without a channel (ruling A4).

    `viewer` names another user than the caller; `apart` keeps channel stores per extension as well.
    """
    if store.per_channel and not channel:
        raise BadRequest("Invalid channel", f"{store.name} needs a channel: a token with channel_id, or ?channel_id=")
    return Key(
        store.name,
        caller.client_id if store.per_extension or apart else "",
        "",
        (channel or "") if store.per_channel else "",
        (viewer or caller.identity) if store.per_viewer else "",
    )


def update_of(store: Store, text: bytes) -> tuple[str, object]:
    """What subscribers are told of a store that was written: target and data, as published clients parse them."""
    if store.is_config:
        return "config", {"config": msgspec.Raw(text), "config_id": store.feed_id}
    return store.feed_id, {"topic_id": store.feed_id, "state": msgspec.Raw(text)}


def json_store_key(caller: Caller, channel: str | None, store_id: str) -> Key:
    """Where a JSON store is kept: the extension when its id starts with `global`, else its channel (ruling S5)."""
    if store_id.startswith("global"):
        return Key("json_store", caller.client_id, store_id)
    if not channel:
        raise BadRequest("Invalid channel", "json_store needs a channel: a token with channel_id, or ?channel_id=")
    return Key("json_store", caller.client_id, store_id, channel)


def checked_document(document: Any, *, largest: int = LARGEST, name: str = "the store") -> bytes:
    """The compact JSON of a store's new content; raises `BadRequest` if it is no object or too large."""
    if not isinstance(document, dict):
        raise BadRequest("Invalid body", f"{name} must be a JSON object")
    text = json_codec.encode(document)
    if len(text) > largest:
        raise BadRequest("Store too large", f"{name} would have {len(text)} bytes of compact JSON, at most {largest}")
    return text


def checked_users(users: list[str]) -> list[str]:
    """At most 1,000 ids, each once."""
    if len(users) > MOST_USERS:
        raise BadRequest("Too many ids specified", f"{len(users)} ids given, at most {MOST_USERS} are taken")
    return list(dict.fromkeys(users))


def is_map_of_patches(store: Store, body: dict[str, Any]) -> bool:
    """Whether an admin's PATCH body maps ids to patches: all keys look like ids, all values like patches.

    A name that ends in a digit looks like a user's id, since an admin's own viewer record hardly needs patching; a
    channel's id must be digits alone, since a channel's config may well have a member `level1`.
    """
    looks_like_id = _USER_ID if store.per_viewer else _CHANNEL_ID
    return (
        store.takes_maps
        and bool(body)
        and all(looks_like_id.fullmatch(name) for name in body)
        and all(isinstance(value, dict | list) for value in body.values())
    )
