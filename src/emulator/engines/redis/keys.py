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


def by_holder(key: Key) -> bytes:
    """For shapes that ask for all holders together."""
    return _written(key.shelf, key.owner, key.name, key.place, key.holder)


def beside_holder(key: Key) -> bytes:
    """What `by_holder` gives, up to the holder."""
    return _written(key.shelf, key.owner, key.name, key.place)


def of_holder(text: bytes) -> Key:
    return Key(*_read(text))


def by_place(key: Key) -> bytes:
    """For shapes that ask for all places together."""
    return _written(key.shelf, key.owner, key.name, key.holder, key.place)


def beside_place(key: Key) -> bytes:
    """What `by_place` gives, up to the place."""
    return _written(key.shelf, key.owner, key.name, key.holder)


def of_place(text: bytes) -> Key:
    shelf, owner, name, holder, place = _read(text)
    return Key(shelf, owner, name, place, holder)


def by_name(key: Key) -> bytes:
    """For shapes that ask for all names together."""
    return _written(key.shelf, key.owner, key.holder, key.place, key.name)


def beside_name(key: Key) -> bytes:
    """What `by_name` gives, up to the name."""
    return _written(key.shelf, key.owner, key.holder, key.place)


def name_of(part: bytes) -> str:
    """The name, where a key that `by_name` gave ends with `part`."""
    return _plain(part.decode())


def _written(*parts: str | None) -> bytes:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        raise ValueError(f"this operation needs one place: {parts}")
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
