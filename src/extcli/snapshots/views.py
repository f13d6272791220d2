"""Views of snapshots and of their differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import stacked, table_of
from extcli.snapshots.comparison import Comparison
from extcli.snapshots.content import Header, Records, lines_of
from extcli.snapshots.files import size

if TYPE_CHECKING:
    from rich.console import RenderableType

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def _counts_table(answer: Mapping[str, Any]) -> RenderableType:
    table = table_of("records", "", right=(1,))
    for name, count in answer["counts"].items():
        table.add_row(visible(name), f"{count:,}")
    return table if table.row_count else "no records"


COUNTS = View(
    table=_counts_table,
    rows=lambda answer: [(field(name), field(count)) for name, count in answer["counts"].items()],
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


def _facts_table(facts: Mapping[str, Any]) -> RenderableType:
    table = table_of("records", "kind", "", right=(2,), folded=(1,))
    for each in facts["records"]:
        table.add_row(visible(each["type"]), visible(each["kind"]), f"{each['count']:,}")
    text = "\n".join(
        (
            f"clock    {clock_text(facts['clock'])}",
            f"keys     {'yes' if facts['keys'] else 'no'}",
            f"saved by extcli {visible(facts['version'])}, {visible(facts['environment'])}",
            f"size     {facts['bytes']:,} bytes",
        )
    )
    return stacked(text, table if table.row_count else "no records")


FACTS = View(
    table=_facts_table,
    rows=lambda facts: [[field(each[name]) for name in ("type", "kind", "count")] for each in facts["records"]],
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


def _difference_row(each: Mapping[str, Any]) -> list[str]:
    key = " ".join(part or "-" for part in (*each["key"], *each["of"]))
    return [_SIGNS[each["change"]], each["type"], key, ", ".join(each.get("fields", ()))]


def _difference_table(document: Mapping[str, Any]) -> RenderableType:
    if document["equal"]:
        return "no difference"
    table = table_of("", "record", "key", "changed fields", folded=(2, 3))
    for name in document["header"]:
        table.add_row("~", "header", name, "")
    for each in document["records"]:
        table.add_row(*map(visible, _difference_row(each)))
    return table if table.row_count else "the records are the same, in another order"


DIFFERENCE = View(
    table=_difference_table,
    rows=lambda document: [
        *(("~", "header", name, "") for name in document["header"]),
        *([field(part) for part in _difference_row(each)] for each in document["records"]),
    ],
    items=lambda document: document["records"],
)
