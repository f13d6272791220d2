"""Tables and rows for registered extensions. They never contain secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from extcli.extensions.registry import NOT_BEFORE, Registration, Source, text_of
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import table_of

if TYPE_CHECKING:
    from rich.console import RenderableType


def facts_of(registration: Registration) -> dict[str, Any]:
    """Return an extension as a record, without its secrets."""
    return {
        "client_id": registration.client_id,
        "owner_user_id": registration.owner,
        "secrets": len(registration.sources),
        "sources": [_facts_of(source) for source in registration.sources],
        **({NOT_BEFORE: text_of(registration.not_before)} if registration.not_before else {}),
    }


def _facts_of(source: Source) -> dict[str, str]:
    facts = {"from": source.kind, "name": source.name, "state": source.state}
    return {name: value for name, value in facts.items() if value}


def _in_words(source: dict[str, str]) -> str:
    place = source["from"] + (f" {source['name']}" if "name" in source else "")
    return place if source["state"] == "ok" else f"{place} ({source['state']})"


def _table(extensions: Sequence[dict[str, Any]]) -> RenderableType:
    table = table_of("client id", "owner", "secrets", "from, newest first", folded=range(4))
    for extension in extensions:
        places = "\n".join(visible(_in_words(source)) for source in extension["sources"])
        owner = extension["owner_user_id"]
        table.add_row(visible(extension["client_id"]), visible(owner or "-"), str(extension["secrets"]), places)
    return table


REGISTRATIONS = View(
    table=_table,
    rows=lambda extensions: [
        [
            field(extension["client_id"]),
            field(extension["owner_user_id"] or ""),
            field(extension["secrets"]),
            field(", ".join(_in_words(source) for source in extension["sources"])),
        ]
        for extension in extensions
    ],
    items=lambda extensions: extensions,
)
