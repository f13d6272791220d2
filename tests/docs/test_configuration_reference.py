"""The tables of docs/configuration.md and docs/serve.md equal the settings and the options of `serve`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from blocks import ROOT

from emulator.config.environment import PRODUCTION, SANDBOX
from emulator.config.settings import NAMESPACE_IDLE
from extcli.app import load_noun
from extcli.config import settings

TEXT = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("configuration", "serve"))
DEFAULTS = {
    "url": settings.DEFAULT_URL,
    "client_id": settings.DEFAULT_CLIENT_ID,
    "channel": settings.DEFAULT_CHANNEL,
    "pin_path": settings.DEFAULT_PIN_PATH,
    "broadcast_method": settings.DEFAULT_BROADCAST_METHOD,
    "timeout": f"{settings.DEFAULT_TIMEOUT:.0f}s",
}
"""Those that are one value; the others are words."""

OPTIONS = [each for each in load_noun("serve").params if not each.hidden]


def rows(heading: str) -> list[list[str]]:
    """The rows of the table whose heading begins like this, with their cells."""
    found = []
    for table in re.findall(rf"^\| {heading} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT, re.MULTILINE):
        found += [[cell.strip() for cell in line.strip("|").split(" |")] for line in table.splitlines()]
    return [[cell.strip("` ") if cell.count("`") == 2 else cell for cell in row] for row in found]


def test_the_documented_settings_equal_the_code() -> None:
    coded = {key: (setting.option, setting.variable) for key, setting in settings.SETTINGS.items()}

    assert {**coded, settings.PRODUCTION: ("", "")} == {row[0]: (row[1], row[2]) for row in rows("Profile key")}


def test_the_documented_defaults_of_settings_equal_the_code() -> None:
    written = {row[0]: row[3] for row in rows("Profile key")}

    assert DEFAULTS == {key: written[key] for key in DEFAULTS}


def test_every_variable_is_in_the_tables() -> None:
    sources = [path.read_text() for path in Path(settings.__file__).parent.parent.rglob("*.py")]
    used = {name for source in sources for name in re.findall(r"\bEXTCLI_(?!SERVE_)[A-Z_]+[A-Z]\b", source)}
    written = {row[2] for row in rows("Profile key")} | {row[0] for row in rows("Variable")}

    assert used == written - {""}


def _range(parameter: Any) -> str:
    info = parameter.type_descriptor.parameter_info
    if info.max is not None:
        return f"{info.min} to {info.max}"
    return "" if info.min is None else f"at least {info.min}"


def _default(parameter: Any) -> str:
    if parameter.name == "caller_rate":
        assert not SANDBOX.caller_rate
        return f"production: {PRODUCTION.caller_rate}; sandbox: none"
    if hasattr(PRODUCTION.anonymous, parameter.name):
        assert not getattr(SANDBOX.anonymous, parameter.name)
        return f"production: {getattr(PRODUCTION.anonymous, parameter.name)}; sandbox: none"
    if parameter.name == "namespace_idle":
        assert NAMESPACE_IDLE == 24 * 60 * 60
        return "24h"
    if parameter.is_flag:
        return "on, with `exec` off" if parameter.name == "log_audit" else "off"
    return "" if parameter.default is None else str(parameter.default)


@pytest.mark.parametrize("parameter", OPTIONS, ids=lambda each: each.opts[0])
def test_each_option_of_serve_is_described_with_its_default(parameter: Any) -> None:
    expected = [parameter.opts[0], parameter.envvar, _default(parameter), _range(parameter)]

    assert [expected] == [row[:4] for row in rows("Option") if row[0] == parameter.opts[0]]


def test_no_option_of_serve_is_made_up() -> None:
    assert {each.opts[0] for each in OPTIONS} == {row[0] for row in rows("Option")}
