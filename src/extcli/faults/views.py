"""Views of the faults of an emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import table_of

if TYPE_CHECKING:
    from rich.console import RenderableType

_CONDITIONS = ("role", "channel", "user", "client_id", "event")


def conditions_of(fault: dict[str, Any]) -> str:
    """Return the conditions of a fault besides its match: `role=viewer channel=1001`."""
    return " ".join(f"{name}={fault[name]}" for name in _CONDITIONS if fault.get(name))


def effect_of(fault: dict[str, Any]) -> str:
    """Return what a fault does: `status 503, retry after 1 s`."""
    effect = str(fault["effect"])
    if effect == "status":
        after = fault.get("retry_after")
        return f"status {fault['status']}" + (f", retry after {after} s" if after is not None else "")
    if effect == "delay":
        longest = fault.get("delay_max")
        return f"delay {times.span(fault['delay'])}" + (f" to {times.span(longest)}" if longest else "")
    if effect == "truncate":
        return f"truncate after {fault['bytes']} bytes"
    return f"close {fault['code']}" if effect == "close" else effect


def left_of(fault: dict[str, Any]) -> str:
    """Return how much longer a fault acts: `2 of 3`, `10% at random`, `until 20:15:00Z`; empty if nothing limits it."""
    parts = []
    if fault.get("left") is not None:
        parts.append(f"{fault['left']} of {fault['times']}")
    if fault.get("share") is not None:
        parts.append(f"{fault['share'] * 100:.4g}% at random")
    if fault.get("ends_at") is not None:
        parts.append(f"until {times.shown(fault['ends_at'] // 1000 * 1000)}")
    return ", ".join(parts)


def _table(document: dict[str, Any]) -> RenderableType:
    table = table_of("", "match", "effect", "hits", "left", right=(3,), folded=(0, 1, 2, 4))
    for each in document["faults"]:
        match = f"{each['match']} {conditions_of(each)}".strip()
        table.add_row(*map(visible, (each["id"], match, effect_of(each), str(each["hits"]), left_of(each))))
    return table if table.row_count else "no faults"


def _row(each: dict[str, Any]) -> list[str]:
    return [field(each["id"]), field(each["match"]), field(conditions_of(each)), field(effect_of(each)),
            field(each["hits"]), field(left_of(each))]  # fmt: skip


FAULTS = View(
    table=_table,
    rows=lambda document: map(_row, document["faults"]),
    items=lambda document: document["faults"],
)

FAULT = View(
    table=lambda fault: (
        visible(f"fault {fault['id']}: {fault['match']} {conditions_of(fault)}".rstrip()) + f", {effect_of(fault)}"
    ),
    rows=lambda fault: [(field(fault["id"]),)],
)
"""A fault that was added."""

REMOVED = View(
    table=lambda document: f"{document['removed']} removed",
    rows=lambda document: [(field(document["removed"]),)],
)
"""How many faults were removed."""
