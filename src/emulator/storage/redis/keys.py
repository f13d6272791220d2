"""The text form of keys and times in Redis.

All keys of a namespace begin with one hash tag, so a cluster keeps them in one slot. That lets one atomic operation
write documents of several owners, and lets a purge or reset cover everything.

A `Key` is written with a different part last, depending on the data type: the part that some operations search across.
"""

from __future__ import annotations

import re
from typing import Final

from emulator.core.keys import NEVER, Key

_NAMESPACE: Final = re.compile(rb"\{emulator\|([^{}]*)\}:\d+:ends")
FOREVER = (1 << 53) - 1
"""Lua's numbers are doubles, so an expiry from here on is never reached."""


def namespace_key(namespace: str) -> bytes:
    escaped = _escape(namespace).replace("{", "%7B").replace("}", "%7D")
    return f"{{emulator|{escaped}}}".encode()


def parse_namespace(key: bytes) -> str | None:
    """Return the namespace whose expiries are stored under this key; `None` for any other key."""
    found = _NAMESPACE.fullmatch(key)
    if found is None:
        return None
    return _unescape(found[1].decode().replace("%7B", "{").replace("%7D", "}"))


def escaped(text: bytes) -> bytes:
    """Return a pattern of `SCAN` that matches this text."""
    return b"".join(b"\\" + bytes((one,)) if one in rb"*?[]\^-" else bytes((one,)) for one in text)


def expiry_arg(at: int) -> bytes:
    """Return an `expires_at`, or another time to compare with `now`, as text that sorts like the number."""
    return b"%016d" % min(at, FOREVER)


def now_arg(now: int) -> bytes:
    """Return a `now`, which is always before `FOREVER`."""
    return b"%016d" % min(now, FOREVER - 1)


def user_last(key: Key) -> bytes:
    return _join(key.kind, key.owner, key.name, key.channel, key.user)


def user_last_prefix(key: Key) -> bytes:
    return _join(key.kind, key.owner, key.name, key.channel)


def parse_user_last(text: bytes) -> Key:
    return Key(*_split(text))


def channel_last(key: Key) -> bytes:
    return _join(key.kind, key.owner, key.name, key.user, key.channel)


def channel_last_prefix(key: Key) -> bytes:
    return _join(key.kind, key.owner, key.name, key.user)


def parse_channel_last(text: bytes) -> Key:
    kind, owner, name, user, channel = _split(text)
    return Key(kind, owner, name, channel, user)


def name_last(key: Key) -> bytes:
    return _join(key.kind, key.owner, key.user, key.channel, key.name)


def name_last_prefix(key: Key) -> bytes:
    return _join(key.kind, key.owner, key.user, key.channel)


def listed_group(group: Key) -> bytes:
    return _join(group.kind, group.owner)


def listed_range(group: Key, after: Key | None) -> tuple[bytes, bytes]:
    """Return the two ends of a range in the index of `lua/common.lua`: for one channel or all, starting after a key."""
    first, last = b"-", b"+"
    if group.channel is not None:
        channel = _key_position(group.channel)
        first, last = b"[" + channel + b"\0", b"(" + channel + b"\1"
    if after is not None:
        first = b"(" + _key_position(after.channel or "", after.name, after.user)
    return first, last


def parse_place(group: Key, place: bytes) -> Key:
    channel, name, user = (_unescape(part.replace("%00", "\0")) for part in place.decode().split("\0"))
    return Key(group.kind, group.owner, name, channel, user)


def _key_position(*parts: str) -> bytes:
    return "\0".join(_escape(part).replace("\0", "%00") for part in parts).encode()


def parse_name_last(text: bytes) -> Key:
    kind, owner, user, channel, name = _split(text)
    return Key(kind, owner, name, channel, user)


def parse_name_last_prefix(text: bytes) -> Key:
    kind, owner, user, channel = _split(text)
    return Key(kind, owner, "", channel, user)


def parse_thing(name: bytes) -> Key:
    """Rebuild the key of a document, ballot, log or pool from its type letter and its Redis key."""
    return _PARSERS[name[:1]](name[1:])


def parse_expiry(text: bytes) -> int:
    """Return the time that `expiry_arg` wrote."""
    at = int(text)
    return NEVER if at >= FOREVER else at


def parse_part(part: bytes) -> str:
    return _unescape(part.decode())


_PARSERS: Final = {b"d": parse_user_last, b"b": parse_channel_last, b"l": parse_channel_last, b"p": parse_user_last}


def _join(*parts: str | None) -> bytes:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        raise ValueError(f"this operation needs one channel: {parts}")
    text = "|".join(known)
    if "%" in text or text.count("|") >= len(known):
        text = "|".join([_escape(part) for part in known])
    return text.encode()


def _split(text: bytes) -> list[str]:
    return [_unescape(part) for part in text.decode().split("|")]


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace("|", "%7C")


def _unescape(part: str) -> str:
    return part.replace("%7C", "|").replace("%25", "%")
