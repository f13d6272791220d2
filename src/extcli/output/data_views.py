"""Views of data files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import stacked, table_of

if TYPE_CHECKING:
    from rich.console import RenderableType


def facts_document(facts: Any, file: str) -> dict[str, Any]:
    """Return the JSON that describes a data file; `facts` are those of the engine."""
    return {
        "file": file,
        "format": facts.format,
        "version": facts.version,
        "bytes": facts.bytes,
        "free_bytes": facts.free_bytes,
        "namespaces": facts.namespaces,
        "oldest": facts.oldest,
        "newest": facts.newest,
        "environments": [{"name": name, "counts": dict(counts)} for name, counts in facts.environments.items()],
    }


def findings_document(verified: Any, file: str) -> dict[str, Any]:
    """Return the JSON of a verification."""
    findings = [{"table": table, "key": key, "what": what} for table, key, what in verified.findings]
    return {"file": file, "format": verified.format, "findings": findings}


def _facts_table(facts: Mapping[str, Any]) -> RenderableType:
    lines = [
        f"format   {facts['format']}, written by extcli {visible(facts['version'] or 'of an unknown version')}",
        f"size     {facts['bytes']:,} bytes, {facts['free_bytes']:,} of them free",
    ]
    if facts["newest"] is not None:
        lines.append(f"entries  {times.shown(facts['oldest'])} to {times.shown(facts['newest'])}")
    if facts["namespaces"]:
        lines.append(f"namespaces  {facts['namespaces']:,}")
    if "backup" in facts:
        made = facts["backup"]
        lines.append(f"backup   {times.shown(made['at'])}, {visible(made['file'])}" if made else "backup   none known")
    table = table_of("environment", "kind", "", right=(2,))
    for name, kind, count in _counts(facts):
        table.add_row(visible(name), visible(kind), f"{count:,}")
    return stacked("\n".join(lines), table if table.row_count else "empty")


def _counts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    for environment in facts["environments"]:
        for kind, count in environment["counts"].items():
            yield environment["name"], kind, count


def _rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name in ("format", "version", "bytes", "free_bytes", "namespaces", "oldest", "newest"):
        yield name, "" if facts[name] is None else field(facts[name])
    if "backup" in facts:
        made = facts["backup"]
        yield ("backup", field(made["at"]), field(made["file"])) if made else ("backup", "", "")
    for name, kind, count in _counts(facts):
        yield field(name), field(kind), field(count)


FACTS = View(table=_facts_table, rows=_rows)
"""What a data file holds."""


def _findings_table(document: Mapping[str, Any]) -> RenderableType:
    table = table_of("table", "key", "what is wrong", folded=(1, 2))
    for finding in document["findings"]:
        table.add_row(*(visible(finding[name]) for name in ("table", "key", "what")))
    return table if table.row_count else "nothing is wrong"


FINDINGS = View(
    table=_findings_table,
    rows=lambda document: [
        tuple(field(finding[name]) for name in ("table", "key", "what")) for finding in document["findings"]
    ],
    items=lambda document: document["findings"],
)
"""What is wrong with a data file."""
