"""Every page of help, and its section of docs/cli.md: each option of the command, and words instead of Python types."""

from __future__ import annotations

import re
from collections.abc import Container
from functools import cache
from typing import Any

import pytest
import typer.main

from extcli.app import app
from extcli.cli.shared_options import SERVE_PANEL
from tools.cli_reference import FILE, SERVE, SHARED_PANEL, commands

_PYTHON_TYPE = re.compile(
    r"One of (?:str|int|float|bool|path|list\[)|<[a-z]+(?:\[[^\]]*\])?(?: range)?>|\blist\[|\bStrEnum\b|\bNone\b"
)
_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
_SECTION = re.compile(r"^###? extcli (.+)\n((?:(?!##).*\n?)*)", re.MULTILINE)
ROOT: Any = typer.main.get_command(app)
SECTIONS = dict(_SECTION.findall(FILE.read_text(encoding="utf-8")))
PAGES = dict(commands())
every_page = pytest.mark.parametrize("name", PAGES)


@cache
def help_of(name: str) -> str:
    command = PAGES[name]
    with (
        ROOT.make_context("extcli", [], resilient_parsing=True) as parent,
        command.make_context(name, [], parent, resilient_parsing=True, terminal_width=200) as context,
    ):
        return str(command.get_help(context))


def options_of(command: Any, *, without: Container[str] = ()) -> set[str]:
    """The names of its visible options, with the negative ones of switches, except the options in some panels."""
    visible = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    chosen = [each for each in visible if each.rich_help_panel not in without]
    return {name for each in chosen for name in (*each.opts, *each.secondary_opts)}


def listed(text: str) -> set[str]:
    """The options in the first column of the tables of a help page."""
    rows = re.findall(r"^  (-\S.*?)(?:   *\S.*)?$", text, re.MULTILINE)
    return {name for row in rows for name in _OPTION.findall(row)}


@every_page
def test_a_page_of_help_has_no_python_types(name: str) -> None:
    assert [] == _PYTHON_TYPE.findall(help_of(name))


@every_page
def test_a_page_of_help_lists_every_option_of_its_command(name: str) -> None:
    is_group = hasattr(PAGES[name], "commands") and not PAGES[name].invoke_without_command
    # The verbs of a group list the shared options.
    own = options_of(PAGES[name], without=[SHARED_PANEL] if is_group else [])

    assert own | {"-h", "--help"} == listed(help_of(name))


@every_page
def test_the_reference_lists_every_option_of_a_command(name: str) -> None:
    rows = re.findall(r"^\| (`-.*?) \| ", SECTIONS[name], re.MULTILINE)
    own = options_of(PAGES[name], without=[SHARED_PANEL, SERVE_PANEL])

    # docs/serve.md lists the options of serve.
    assert (set() if name == SERVE else own) == {option for row in rows for option in _OPTION.findall(row)}


def test_the_reference_has_no_python_types() -> None:
    assert [] == _PYTHON_TYPE.findall(FILE.read_text(encoding="utf-8"))


def test_the_usage_of_a_command_marks_what_may_be_left_out_alone() -> None:
    usages = {name: re.sub(r"\s+", " ", help_of(name)).partition("Usage: ")[2] for name in PAGES}

    assert [] == [name for name, usage in usages.items() if re.search(r"[{]|\[\[\w+\]\]|\.{4}", usage[:60])]
