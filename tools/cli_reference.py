"""Makes docs/cli.md from the commands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from extcli.app import NOUNS, load_noun
from extcli.app import app as root
from extcli.cli.parsing import SERVE_PANEL, SHARED_PANEL, value_name
from extcli.commands.conditions import CONDITIONS
from extcli.errors import EXIT_CODE_MEANINGS
from support.operations import ROWS

FILE = Path(__file__).parent.parent / "docs" / "cli.md"
SERVE = "serve"

HEAD = """\
# Command reference

`make docs` generates this page from the commands; `extcli COMMAND --help` prints the same.

## Exit codes

| Exit code | Meaning |
|---|---|
EXIT_CODES

## Output

Data goes to standard output, everything else to standard error.

| Format | Content |
|---|---|
| `table` | For people; the default on a terminal |
| `plain` | Tab-separated fields in a fixed order; the default in a pipe |
| `json` | The service's response, byte for byte; errors are JSON too |
| `jsonl` | One JSON document per line |
| `csv` | The fields of `plain`, after a line with the names of the columns of a list |
"""
SHARED = """\
## Shared options

Every command but `serve` and `exec` takes these, before or after its name. [Configuration](configuration.md) lists
their variables.
"""
SERVE_OPTIONS = "See [Options of serve](serve.md).\n"


OPERATIONS = """\
## Operations of the service

Each endpoint, WebSocket action and control call, with a command that reaches it. `extcli socket send` sends any action,
and `extcli api` calls any endpoint.
"""


def commands(*, every: bool = False) -> Iterator[tuple[str, Any]]:
    """Each group and command with its full name, in the order of `extcli --help`.

    The conditions of `wait` are also verbs of `expect`, which it yields only for `every` one.
    """
    for noun in NOUNS:
        found = load_noun(noun)
        yield noun, found
        for verb, command in getattr(found, "commands", {}).items():
            if not command.hidden and (every or noun != "expect" or verb not in CONDITIONS):
                yield f"{noun} {verb}", command


def examples(command: Any) -> list[str]:
    """The examples in a command's help, one command line each."""
    _, _, below = (command.help or "").partition("Example")
    return [line.strip() for line in re.sub(r"^s?:", "", below).splitlines() if line.strip()]


def page() -> str:
    """Return docs/cli.md."""
    own = [each for each in typer.main.get_command(root).params if not is_shared(each)]
    shared = [each for each in load_noun("reset").params if is_shared(each)]
    codes = "\n".join(f"| {int(code)} | {meaning} |" for code, meaning in EXIT_CODE_MEANINGS.items())
    parts = [HEAD.replace("EXIT_CODES", codes), SHARED, _table("Option", shared), "## extcli\n", _table("Option", own)]
    for name, command in commands():
        parts += _section(name, command)
    parts += [OPERATIONS, _operations()]
    return "\n".join(parts)


def _operations() -> str:
    rows = [("Operation", "Command"), ("---", "---")]
    rows += [(f"`{operation}`", f"`extcli {_cell(command)}`") for operation, command in ROWS]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def _section(name: str, command: Any) -> list[str]:
    is_group = hasattr(command, "commands")
    parts = [f"{'##' if ' ' not in name else '###'} extcli {name}\n", _text(command)]
    if is_group and not command.invoke_without_command:
        return parts
    visible = [each for each in command.params if not getattr(each, "hidden", False) and not is_shared(each)]
    of_serve = [each for each in visible if getattr(each, "rich_help_panel", None) == SERVE_PANEL]
    visible = [each for each in visible if each not in of_serve]
    arguments = [each for each in visible if each.param_type_name == "argument"]
    options = [each for each in visible if each.param_type_name == "option"]
    parts.append(f"Usage: `{_usage(name, arguments, options)}`\n")
    if arguments:
        parts.append(_table("Argument", arguments))
    if name == SERVE:
        parts.append(SERVE_OPTIONS)
    elif options:
        parts.append(_table("Option", options))
    if of_serve:
        parts.append("Also all [options of `serve`](serve.md).\n")
    if shown := examples(command):
        parts.append("```shell\n" + "\n".join(shown) + "\n```\n")
    return parts


def _text(command: Any) -> str:
    """The help without its examples, each paragraph on one line."""
    above = inspect.cleandoc(command.help or "").partition("Example")[0].replace("\b", "")
    paragraphs = [" ".join(each.split()) for each in above.split("\n\n")]
    return "\n\n".join(each for each in paragraphs if each) + "\n"


def _usage(name: str, arguments: list[Any], options: list[Any]) -> str:
    words = [f"extcli {name}", *(["[OPTIONS]"] if options else [])]
    for each in arguments:
        words.append(value_name(each) if each.required else f"[{value_name(each)}]")
    return " ".join(words)


def _table(kind: str, parameters: list[Any]) -> str:
    rows = [(kind, "Meaning", "Default"), ("---", "---", "---")]
    for each in parameters:
        if each.param_type_name == "argument":
            name = f"`{value_name(each)}`"
        else:
            name = ", ".join(f"`{option}`" for option in [*each.opts, *each.secondary_opts])
            if not each.is_flag:
                name = f"{name[:-1]} {value_name(each)}`"
        rows.append((_cell(name), _cell(_meaning(each)), _default(each)))
    shown = 3 if any(row[2] for row in rows[2:]) else 2
    return "\n".join("| " + " | ".join(row[:shown]) + " |" for row in rows) + "\n"


def _meaning(parameter: Any) -> str:
    limits = _limits(parameter)
    return f"{parameter.help or ''}{f' {limits}.' if limits else ''}"


def _limits(parameter: Any) -> str:
    descriptor = getattr(parameter, "type_descriptor", None)
    info = getattr(descriptor, "parameter_info", None)
    least, most = getattr(info, "min", None), getattr(info, "max", None)
    if least is not None and most is not None:
        return f"{least} to {most}"
    return f"At least {least}" if least is not None else f"At most {most}" if most is not None else ""


def _default(parameter: Any) -> str:
    default = parameter.default
    if default in (None, False, "", ()) or callable(default) or not parameter.show_default:
        return ""
    return f"`{default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def is_shared(parameter: Any) -> bool:
    return getattr(parameter, "rich_help_panel", None) == SHARED_PANEL
