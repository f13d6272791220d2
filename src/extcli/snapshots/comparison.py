"""Compares two snapshots, with a few dozen bytes of memory for each record; views of snapshots and of differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.columns import Column, grouped, listing, name_and_count_columns, whole
from extcli.output.sanitize import visible
from extcli.output.views import stacked
from extcli.snapshots.content import Identity, Records, lines_of, size

if TYPE_CHECKING:
    from rich.console import RenderableType

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
SIGNS = {ADDED: "+", REMOVED: "-", CHANGED: "~"}


def compare(before: Path, after: Path, *, most: int) -> dict[str, Any]:
    """Return the differences between two files as JSON, with at most `most` of the records, removed ones last.

    The version of extcli that saved a file is not compared. Raises `UsageError`.
    """
    contents: dict[bytes, bytes] = {}
    with lines_of(before) as (old_header, lines):
        old_order = _fill(contents, Records(before), lines)
    counts: Counter[str] = Counter()
    listed: list[dict[str, Any]] = []
    with lines_of(after) as (new_header, lines):
        compared = ("environment", "clock", "keys")
        header = [name for name in compared if getattr(old_header, name) != getattr(new_header, name)]
        changed: dict[Identity, dict[str, Any]] = {}
        order = blake2b()
        records = Records(after)
        for line in lines:
            order.update(_digest(line))
            identity, fields = records.decode(line)
            content = contents.pop(_digest_of(identity), None)
            if content == _digest(line):
                continue
            counts[ADDED if content is None else CHANGED] += 1
            if len(listed) + len(changed) >= most:
                continue
            if content is None:
                listed.append(_difference(ADDED, identity))
            else:
                changed[identity] = fields
    counts[REMOVED] = len(contents)
    is_in_other_order = not counts.total() and old_order != order.digest()
    if changed or (contents and len(listed) < most):
        listed += _changed_and_removed(before, contents, changed, most - len(listed) - len(changed))
    return {
        "equal": not (header or counts.total() or is_in_other_order),
        "header": header,
        **{change: counts[change] for change in SIGNS},
        "other_order": is_in_other_order,
        "records": listed,
    }


def _difference(change: str, identity: Identity, fields: Sequence[str] = ()) -> dict[str, Any]:
    """Return a record that was added, removed or changed, with the names of its changed fields."""
    facts = {"change": change, "type": identity.type, "key": list(identity.key), "of": list(identity.of)}
    return {**facts, "fields": fields} if fields else facts


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


def _changed_and_removed(
    before: Path, left: dict[bytes, bytes], changed: dict[Identity, dict[str, Any]], most_removed: int
) -> list[dict[str, Any]]:
    """Read the first file again, and return the changed records with their fields, then the removed ones."""
    found: list[dict[str, Any]] = []
    removed: list[dict[str, Any]] = []
    with lines_of(before) as (_, lines):
        records = Records(before)
        for line in lines:
            identity, old = records.decode(line)
            if (new := changed.get(identity)) is not None:
                names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
                found.append(_difference(CHANGED, identity, names))
            elif len(removed) < most_removed and _digest_of(identity) in left:
                removed.append(_difference(REMOVED, identity))
    return found + removed


def _digest_of(identity: Identity) -> bytes:
    return _digest(repr(identity).encode())


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


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


def _clock_text(clock: Mapping[str, int]) -> str:
    """Describe the clock of a snapshot."""
    if (frozen_at := clock.get("frozen_at")) is not None:
        return f"frozen at {times.shown(frozen_at)}"
    offset = clock.get("offset", 0)
    return f"{times.span(offset)} {'ahead' if offset > 0 else 'behind'}" if offset else "real time"


def _facts_text(facts: Mapping[str, Any], records: RenderableType) -> RenderableType:
    lines = (
        f"clock    {_clock_text(facts['clock'])}",
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


def _changes(document: Mapping[str, Any]) -> list[dict[str, str]]:
    headers = [{"sign": SIGNS[CHANGED], "type": "header", "key": name, "fields": ""} for name in document["header"]]
    return headers + [
        {
            "sign": SIGNS[each["change"]],
            "type": each["type"],
            "key": " ".join(part or "-" for part in (*each["key"], *each["of"])),
            "fields": ", ".join(each.get("fields", ())),
        }
        for each in document["records"]
    ]


DIFFERENCE = listing(
    _changes,
    Column("|".join(SIGNS.values()), "sign", ""),
    Column("type", heading="record"),
    Column("key", folds=True),
    Column("fields", heading="changed fields", folds=True),
    else_shown=lambda document: "no difference" if document["equal"] else "the records are the same, in another order",
    items=lambda document: document["records"],
)
