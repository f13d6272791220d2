"""The tables of docs/configuration.md and docs/serve.md equal the settings and the options of `serve`."""

from __future__ import annotations

import re
from pathlib import Path

from blocks import ROOT

from extcli.app import load_noun
from extcli.config import settings

TEXT = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("configuration", "serve"))


def rows(heading: str) -> list[list[str]]:
    """The rows of the table whose heading begins like this, with their cells."""
    found = []
    for table in re.findall(rf"^\| {heading} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT, re.MULTILINE):
        found += [[cell.strip() for cell in line.strip("|").split(" |")] for line in table.splitlines()]
    return [[cell.strip("` ") if cell.count("`") == 2 else cell for cell in row] for row in found]


def test_the_documented_settings_equal_the_code() -> None:
    coded = {key: (setting.option, setting.variable) for key, setting in settings.SETTINGS.items()}

    assert {**coded, settings.PRODUCTION: ("", "")} == {row[0]: (row[1], row[2]) for row in rows("Profile key")}


def test_every_variable_is_in_the_tables() -> None:
    sources = [path.read_text() for path in Path(settings.__file__).parent.parent.rglob("*.py")]
    used = {name for source in sources for name in re.findall(r"\bEXTCLI_(?!SERVE_)[A-Z_]+[A-Z]\b", source)}
    written = {row[2] for row in rows("Profile key")} | {row[0] for row in rows("Variable")}

    assert used == written - {""}


def test_the_documented_options_of_serve_equal_the_code() -> None:
    coded = {each.opts[0]: each.envvar for each in load_noun("serve").params if not each.hidden}

    assert coded == {row[0]: row[1] for row in rows("Option")}
