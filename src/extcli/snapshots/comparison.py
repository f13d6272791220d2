"""Compares two snapshots, with a few dozen bytes of memory for each record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from extcli.snapshots.content import Header, Identity, Records, lines_of

ADDED, REMOVED, CHANGED = "added", "removed", "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """A record that is not the same in both snapshots."""

    change: str
    """`ADDED`, `REMOVED` or `CHANGED`."""
    record: Identity
    fields: tuple[str, ...] = ()
    """The names of the changed fields."""


@dataclass(slots=True)
class Comparison:
    """The outcome. A snapshot's version of extcli is not compared."""

    header: list[str]
    """The members of the header that differ: `environment`, `clock` and `keys`."""
    counts: Counter[str] = field(default_factory=Counter)
    """How many records differ, by change."""
    listed: list[Difference] = field(default_factory=list)
    """The first of them, removed ones last."""
    other_order: bool = False
    """Whether both have the same records, in another order."""

    @property
    def is_equal(self) -> bool:
        return not (self.header or self.counts or self.other_order)


def compare(before: Path, after: Path, *, most: int) -> Comparison:
    """Compare two files, and list at most `most` differing records. Raises `UsageError`."""
    contents: dict[bytes, bytes] = {}
    with lines_of(before) as (old_header, lines):
        old_order = _fill(contents, Records(before), lines)
    with lines_of(after) as (new_header, lines):
        found = Comparison(_changed_members(old_header, new_header))
        changed: dict[Identity, dict[str, Any]] = {}
        order = blake2b()
        records = Records(after)
        for line in lines:
            order.update(_digest(line))
            identity, fields = records.decode(line)
            content = contents.pop(_digest_of(identity), None)
            if content == _digest(line):
                continue
            found.counts[ADDED if content is None else CHANGED] += 1
            if len(found.listed) + len(changed) >= most:
                continue
            if content is None:
                found.listed.append(Difference(ADDED, identity))
            else:
                changed[identity] = fields
    found.counts.update({REMOVED: len(contents)} if contents else {})
    found.other_order = not found.counts and old_order != order.digest()
    if changed or (contents and len(found.listed) < most):
        _list_old(found, before, contents, changed, most)
    return found


def _fill(contents: dict[bytes, bytes], records: Records, lines: Iterator[bytes]) -> bytes:
    """Take the digest of each line by that of its identity; return a digest of all in order."""
    order = blake2b()
    for line in lines:
        digest = _digest(line)
        order.update(digest)
        contents[_digest_of(records.decode(line)[0])] = digest
    return order.digest()


def _list_old(
    found: Comparison, before: Path, left: dict[bytes, bytes], changed: dict[Identity, dict[str, Any]], most: int
) -> None:
    """Read the first file again: for the fields of changed records, and for removed ones."""
    removed: list[Difference] = []
    most -= len(found.listed) + len(changed)
    with lines_of(before) as (_, lines):
        records = Records(before)
        for line in lines:
            identity, old = records.decode(line)
            if (new := changed.get(identity)) is not None:
                names = tuple(name for name in sorted({*old, *new}) if old.get(name) != new.get(name))
                found.listed.append(Difference(CHANGED, identity, names))
            elif len(removed) < most and _digest_of(identity) in left:
                removed.append(Difference(REMOVED, identity))
    found.listed += removed


def _changed_members(old: Header, new: Header) -> list[str]:
    return [name for name in ("environment", "clock", "keys") if getattr(old, name) != getattr(new, name)]


def _digest_of(identity: Identity) -> bytes:
    return _digest(repr(identity).encode())


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
