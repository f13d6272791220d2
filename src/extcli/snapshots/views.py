"""Views of snapshots and of their differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.columns import Column, counts_of, grouped, listing, whole
from extcli.output.sanitize import visible
from extcli.output.views import stacked
from extcli.snapshots.comparison import Comparison
from extcli.snapshots.content import Header, Records, lines_of, size

if TYPE_CHECKING:
    from rich.console import RenderableType

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


COUNTS = listing(
    lambda answer: answer["counts"].items(), *counts_of("type", "records"), else_shown="no records", items=whole
)
"""The answer to a load."""


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
