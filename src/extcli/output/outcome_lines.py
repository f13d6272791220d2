"""The outcome of a condition that was not met, in lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extcli.output import times
from extcli.output.sanitize import compact, visible

_WIDTH = 80


def outcome_lines(outcome: Mapping[str, Any]) -> list[str]:
    """Return what was wanted and found, and the last changes, in lines of at most 80 columns."""
    wanted, found = outcome["wanted"], outcome["found"]
    texts = [f"{name}: {text}" for name, text in wanted.items()]
    facts = [f"{name}: {compact(found[name]) if name in found else 'absent'}" for name in wanted]
    changes = [_change_line(change) for change in outcome["changes"]]
    lines = [
        f"  wanted: {', '.join(texts)}",
        f"  found:  {', '.join(facts)}",
        "  last changes:" if changes else "  nothing of this kind has changed yet",
        *(f"    {line}" for line in changes),
    ]
    return [cut(line) for line in lines]


def cut(line: str) -> str:
    """Return the line with control characters escaped, cut to 80 columns."""
    line = visible(line)
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _change_line(change: Mapping[str, Any]) -> str:
    value = "" if change["value"] is None else f" {change['value']}"
    user = f" by {change['user']}" if change["user"] else ""
    channel = f" in channel {change['channel_id']}" if change["channel_id"] else ""
    name = change["id"] or change["kind"]
    return f"{times.shown(change['at'])}  {name}: {change['did']}{value}{user}{channel}"
