"""How keys and instants are written in Redis.

All keys of a namespace begin with one hash tag, so they lie on one slot of a cluster: only so can one operation write
documents of several owners, and a purge or reset see everything, in one atomic step. What runs on one node anyway loses
nothing by it.
"""

from __future__ import annotations

from emulator.engines.base import Key

FOREVER = (1 << 53) - 1
"""Lua counts in doubles. What ends here or later does not end."""


def namespace_key(namespace: str) -> bytes:
    escaped = _escaped(namespace).replace("{", "%7B").replace("}", "%7D")
    return f"{{emulator|{escaped}}}".encode()


def ending(at: int) -> bytes:
    """An `expires_at`, or another instant that `moment`s are held against, in text that sorts like the number."""
    return b"%016d" % min(at, FOREVER)


def moment(now: int) -> bytes:
    """A `now`, which never comes to an end that does not come."""
    return b"%016d" % min(now, FOREVER - 1)


def by_user(key: Key) -> bytes:
    """For shapes that ask for all holders together."""
    return _written(key.kind, key.owner, key.name, key.channel, key.user)


def beside_user(key: Key) -> bytes:
    """What `by_user` gives, up to the user."""
    return _written(key.kind, key.owner, key.name, key.channel)


def of_user(text: bytes) -> Key:
    return Key(*_read(text))


def by_channel(key: Key) -> bytes:
    """For shapes that ask for all channels together."""
    return _written(key.kind, key.owner, key.name, key.user, key.channel)


def beside_channel(key: Key) -> bytes:
    """What `by_channel` gives, up to the channel."""
    return _written(key.kind, key.owner, key.name, key.user)


def of_channel(text: bytes) -> Key:
    kind, owner, name, user, channel = _read(text)
    return Key(kind, owner, name, channel, user)


def by_name(key: Key) -> bytes:
    """For shapes that ask for all names together."""
    return _written(key.kind, key.owner, key.user, key.channel, key.name)


def beside_name(key: Key) -> bytes:
    """What `by_name` gives, up to the name."""
    return _written(key.kind, key.owner, key.user, key.channel)


def name_of(part: bytes) -> str:
    """The name, where a key that `by_name` gave ends with `part`."""
    return _plain(part.decode())


def _written(*parts: str | None) -> bytes:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        raise ValueError(f"this operation needs one channel: {parts}")
    text = "|".join(known)
    if "%" in text or text.count("|") >= len(known):
        text = "|".join([_escaped(part) for part in known])
    return text.encode()


def _read(text: bytes) -> list[str]:
    return [_plain(part) for part in text.decode().split("|")]


def _escaped(part: str) -> str:
    return part.replace("%", "%25").replace("|", "%7C")


def _plain(part: str) -> str:
    return part.replace("%7C", "|").replace("%25", "%")
