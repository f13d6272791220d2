"""The text form of keys in Redis.

All keys of a namespace begin with one hash tag, so a cluster keeps them in one slot. That lets one atomic operation
write documents of several owners, and lets a purge or reset cover everything.

A `Key` is written with a different part last, depending on the data type: the part that some operations search across.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from emulator.core.keys import Key

_NAMESPACE_PATTERN = re.compile(rb"\{emulator\|([^{}]*)\}:\d+:ends")


def namespace_key(namespace: str) -> bytes:
    escaped = escape(namespace).replace("{", "%7B").replace("}", "%7D")
    return f"{{emulator|{escaped}}}".encode()


def parse_namespace(key: bytes) -> str | None:
    """Return the namespace whose expiries are stored under this key; `None` for any other key."""
    found = _NAMESPACE_PATTERN.fullmatch(key)
    if found is None:
        return None
    name = found[1].decode()
    return unescape(name.replace("%7B", "{").replace("%7D", "}"))


class KeyOrder:
    """An order of the parts of a key."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._parts = itemgetter(*map(Key._fields.index, names))

    def text(self, key: Key) -> str:
        return _join_parts(self._parts(key))

    def group(self, key: Key) -> str:
        """Return the text of a key without its last part."""
        return _join_parts(self._parts(key)[:-1])

    def parse(self, text: bytes) -> Key:
        """Return the key of a text. For a text of a group, its last part is empty."""
        parts = map(unescape, text.decode().split("|"))
        named = dict(zip(self._names, parts, strict=False))
        return Key(**{"name": "", **named})


def found_by_key(keys: Iterable[Key], replies: Iterable[Any]) -> dict[Key, Any]:
    """Return a script's reply to each of these keys that it has found."""
    return {key: reply for key, reply in zip(keys, replies, strict=True) if reply is not None}


USER_LAST = KeyOrder("kind", "owner", "name", "channel", "user")
CHANNEL_LAST = KeyOrder("kind", "owner", "name", "user", "channel")
NAME_LAST = KeyOrder("kind", "owner", "user", "channel", "name")


def listing_range(group: Key, after: Key | None) -> tuple[str, str, str]:
    """Return an index of `lua/common.lua`, and a range in it: for one channel or all, starting after a key."""
    index, first, last = _join_parts((group.kind, group.owner)), "-", "+"
    if group.channel is not None:
        channel = _place_text(group.channel)
        first, last = f"[{channel}\0", f"({channel}\1"
    if after is not None:
        first = "(" + _place_text(after.channel or "", after.name, after.user)
    return index, first, last


def parse_place(group: Key, place: bytes) -> Key:
    parts = place.decode().split("\0")
    channel, name, user = (unescape(part.replace("%00", "\0")) for part in parts)
    return Key(group.kind, group.owner, name, channel, user)


def _place_text(*parts: str) -> str:
    return "\0".join(escape(part).replace("\0", "%00") for part in parts)


_KEY_ORDERS = {b"d": USER_LAST, b"b": CHANNEL_LAST, b"l": CHANNEL_LAST, b"p": USER_LAST}


def parse_thing(name: bytes) -> Key:
    """Return the key of a document, ballot, log or pool, by the letter of its type and its text."""
    return _KEY_ORDERS[name[:1]].parse(name[1:])


def _join_parts(parts: tuple[str | None, ...]) -> str:
    known = [escape(part) for part in parts if part is not None]
    if len(known) < len(parts):
        raise ValueError(f"this operation needs one channel: {parts}")
    return "|".join(known)


def escape(part: str) -> str:
    return part.replace("%", "%25").replace("|", "%7C")


def unescape(part: str) -> str:
    return part.replace("%7C", "|").replace("%25", "%")
