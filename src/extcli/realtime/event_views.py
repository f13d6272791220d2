"""How events look as they arrive: a line each, for a terminal, for `cut` and for programs."""

from __future__ import annotations

from typing import Any

from extcli.api.envelope import Message
from extcli.output import times
from extcli.output.printer import View
from extcli.output.sanitize import compact, field, json_text, visible

_INSTANT, _SCOPE = len("2026-11-20 20:15:00.250Z"), len("extension")


def event_of(update: Message) -> dict[str, Any]:
    """The facts of an update; what a deployment leaves out is filled in from what it says otherwise."""
    meta = update.document["meta"]
    said = {"event": meta.get("target", ""), "data": None, "channel_id": "", "scope": ""}
    return {"timestamp": meta.get("timestamp", 0), **said, **update.data}


def _line(event: dict[str, Any]) -> str:
    instant = times.shown(event["timestamp"]) if isinstance(event["timestamp"], int) else ""
    scope, name = visible(str(event["scope"])), visible(str(event["event"]))
    return f"{instant:<{_INSTANT}}  {scope:<{_SCOPE}}  {name}  {visible(compact(event['data']))}"


EVENT = View(table=_line, rows=lambda event: [(field(event["event"]), json_text(event["data"]))])
