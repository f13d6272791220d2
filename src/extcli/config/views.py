"""Tables and rows for settings and profiles. They never contain secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import table_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from extcli.config.profiles import Profile


def _text(value: object) -> str:
    return "-" if value is None else visible(value if isinstance(value, str) else str(value).lower())


def _settings_table(settings: Sequence[dict[str, Any]]) -> RenderableType:
    """Show the path of the profiles file once, as the value of `config`, because it is long."""
    columns = list(settings[0])
    file = next(str(each["value"]) for each in settings if each["key"] == "config")
    table = table_of(*columns, folded=range(1, len(columns)))
    for each in settings:
        table.add_row(*(_text(_short_origin(each[name], file) if name == "origin" else each[name]) for name in columns))
    return table


def _short_origin(origin: str, file: str) -> str:
    return "the key profile" if origin == file else origin.replace(f" in {file}", "")


def _cells(record: dict[str, Any]) -> list[str]:
    return [field("" if value is None else value) for value in record.values()]


SETTINGS = View(table=_settings_table, rows=lambda settings: map(_cells, settings), items=lambda settings: settings)
"""Settings by key, with their origin if requested."""

SETTING = View(
    table=lambda setting: "" if setting["value"] is None else _text(setting["value"]),
    rows=lambda setting: [] if setting["value"] is None else [[field(setting["value"])]],
)
"""The value of one setting; empty if it has none."""


def facts_of(profile: Profile, chosen: str | None) -> dict[str, Any]:
    """Return a profile as a record. `chosen` is the name of the current profile."""
    return {
        "name": profile.name,
        "url": profile.texts.get("url"),
        "production": profile.production,
        "chosen": profile.name == chosen,
    }


def _profiles_table(profiles: Sequence[dict[str, Any]]) -> RenderableType:
    table = table_of("", "name", "url", "", folded=(1, 2))
    for each in profiles:
        mark, kind = "*" if each["chosen"] else "", "production" if each["production"] else ""
        table.add_row(mark, _text(each["name"]), _text(each["url"]), kind)
    return table if table.row_count else "no profiles"


PROFILES = View(table=_profiles_table, rows=lambda profiles: map(_cells, profiles), items=lambda profiles: profiles)
