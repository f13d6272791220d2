"""Compares two snapshots, with a few dozen bytes of memory for each record; views of snapshots and of differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.columns import Column, grouped, listing, name_and_count_columns, whole
from extcli.output.sanitize import visible
from extcli.output.views import stacked
from extcli.snapshots.content import Header, Identity, Records, lines_of, size

if TYPE_CHECKING:
    from rich.console import RenderableType

ADDED, REMOVED, CHANGED = "added", "removed", "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """A record that was added, removed or changed between two snapshots."""

    change: str
    """`ADDED`, `REMOVED` or `CHANGED`."""
    record: Identity
    fields: tuple[str, ...] = ()
    """The names of the changed fields."""


@dataclass(slots=True)
class Comparison:
    """The differences between two snapshots. The version of extcli that saved them is not compared."""

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
        compared = ("environment", "clock", "keys")
        found = Comparison([name for name in compared if getattr(old_header, name) != getattr(new_header, name)])
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
        _list_changed_and_removed(found, before, contents, changed, most)
    return found


def _fill(contents: dict[bytes, bytes], records: Records, lines: Iterator[bytes]) -> bytes:
    """Store the digest of each line in `contents`, by the digest of its record's identity.

    Return a digest of all lines in order.
    """
    order = blake2b()
    for line in lines:
        digest = _digest(line)
        order.update(digest)
        contents[_digest_of(records.decode(line)[0])] = digest
    return order.digest()


def _list_changed_and_removed(
    found: Comparison, before: Path, left: dict[bytes, bytes], changed: dict[Identity, dict[str, Any]], most: int
) -> None:
    """Read the first file again, to list the changed fields of changed records, and removed records."""
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


def _digest_of(identity: Identity) -> bytes:
    return _digest(repr(identity).encode())


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


COUNTS = listing(
    lambda response: response["counts"].items(),
    *name_and_count_columns("type", "records"),
    else_shown="no records",
    items=whole,
)
"""The response to a load."""


def facts_of(path: Path) -> dict[str, Any]:
    """Read a whole file, and return what `snapshot show` prints. Raises `UsageError`."""
    kinds: Counter[tuple[str, str]] = Counter()
    with lines_of(path) as (header, lines):
        records = Records(path)
        for line in lines:
            identity, _ = records.decode(line)
            kinds[identity.type, identity.key[0]] += 1
    return {
        "file": str(path),
        "bytes": size(path),
        "version": header.version,
        "environment": header.environment,
        "clock": dict(header.clock),
        "keys": header.keys,
        "records": [{"type": type, "kind": kind, "count": count} for (type, kind), count in kinds.items()],
    }


def clock_text(header: Header | Mapping[str, int]) -> str:
    """Describe the clock of a snapshot."""
    clock = header.clock if isinstance(header, Header) else header
    if (frozen_at := clock.get("frozen_at")) is not None:
        return f"frozen at {times.shown(frozen_at)}"
    offset = clock.get("offset", 0)
    return f"{times.span(offset)} {'ahead' if offset > 0 else 'behind'}" if offset else "real time"


def _facts_text(facts: Mapping[str, Any], records: RenderableType) -> RenderableType:
    lines = (
        f"clock    {clock_text(facts['clock'])}",
        f"keys     {'yes' if facts['keys'] else 'no'}",
        f"saved by extcli {visible(facts['version'])}, {visible(facts['environment'])}",
        f"size     {facts['bytes']:,} bytes",
    )
    return stacked("\n".join(lines), records)


FACTS = listing(
    "records",
    Column("type", heading="records"),
    Column("kind", folds=True),
    Column("count", heading="", text=grouped, right=True),
    else_shown=lambda facts: _facts_text(facts, "no records"),
    around=_facts_text,
    items=whole,
)


def difference(found: Comparison) -> dict[str, Any]:
    """Return the differences as JSON."""
    return {
        "equal": found.is_equal,
        "header": found.header,
        **{name: found.counts[name] for name in _SIGNS},
        "other_order": found.other_order,
        "records": [
            {
                "change": each.change,
                "type": each.record.type,
                "key": list(each.record.key),
                "of": list(each.record.of),
                **({"fields": list(each.fields)} if each.fields else {}),
            }
            for each in found.listed
        ],
    }


def _changes(document: Mapping[str, Any]) -> list[dict[str, str]]:
    headers = [{"sign": _SIGNS["changed"], "type": "header", "key": name, "fields": ""} for name in document["header"]]
    return headers + [
        {
            "sign": _SIGNS[each["change"]],
            "type": each["type"],
            "key": " ".join(part or "-" for part in (*each["key"], *each["of"])),
            "fields": ", ".join(each.get("fields", ())),
        }
        for each in document["records"]
    ]


DIFFERENCE = listing(
    _changes,
    Column("|".join(_SIGNS.values()), "sign", ""),
    Column("type", heading="record"),
    Column("key", folds=True),
    Column("fields", heading="changed fields", folds=True),
    else_shown=lambda document: "no difference" if document["equal"] else "the records are the same, in another order",
    items=lambda document: document["records"],
)
