"""Tables and rows for settings and profiles. They never contain secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from extcli.output.columns import Column, listing
from extcli.output.printer import View
from extcli.output.sanitize import field, visible

if TYPE_CHECKING:
    from extcli.config.profiles import Profile


def _text(value: object) -> str:
    return "-" if value is None else visible(value if isinstance(value, str) else str(value).lower())


def _without_file(settings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Show the path of the profiles file once, as the value of `config`, because it is long."""
    file = next(str(each["value"]) for each in settings if each["key"] == "config")
    return [
        {**each, **({"origin": _short_origin(each["origin"], file)} if "origin" in each else {})} for each in settings
    ]


def _short_origin(origin: str, file: str) -> str:
    return "the key profile" if origin == file else origin.replace(f" in {file}", "")


def _plain(value: object) -> str:
    return field("" if value is None else value)


_SETTINGS = listing(
    "",
    Column("key", text=_text),
    Column("value", text=_text, plain=_plain, folds=True),
    Column("origin", text=_text, folds=True, optional=True),
)
SETTINGS = replace(_SETTINGS, table=lambda settings: _SETTINGS.table(_without_file(settings)))
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


PROFILES = listing(
    "",
    Column("", lambda each: "*" if each["chosen"] else "", ""),
    Column("name", text=_text, folds=True),
    Column("url", text=_text, plain=_plain, folds=True),
    Column("production", heading="", text=lambda production: "production" if production else ""),
    Column("current", "chosen", None),
    else_shown="no profiles",
)
