"""Makes the table of commands for completion."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer.main

from extcli.app import NOUNS
from extcli.app import app as root
from extcli.completion import FILES, NOTHING, REST, SHARED, SHELLS
from extcli.config.settings import KEYS, ROLES
from extcli.output.format import Format
from extcli.parity import RULE_GROUPS, RULES, UNKNOWN
from extcli.running.exec_run import PARITY
from tools.cli_reference import commands, is_shared

FILE = Path(SHELLS) / "commands.json"

KINDS = {
    "POLL": "polls",
    "rank ID": "rankings",
    "accumulate ID": "buffers",
    "accumulate [ID] JSON|-|@FILE|KEY=JSON": "buffers",
    "codes PRIZE": "sets",
    "codes I": "sets",
    "codes N": "sets",
    "ns NAME": "namespaces",
    "ns FROM": "namespaces",
    "fault ID": "faults",
    "profile NAME": "profiles",
    "--profile": "profiles",
    "KEY": "|".join(KEYS),
    "ROLE": "|".join(ROLES),
    "ROLE[:USER]": "|".join(ROLES),
    "FORMAT": "|".join(Format),
    "COMMAND": FILES,
    "expect RULE,…": "|".join((*RULES, *RULE_GROUPS, UNKNOWN)),
    "--fail-on": "|".join((PARITY, *(f"{PARITY}={rule}" for rule in (*RULES, *RULE_GROUPS, UNKNOWN)))),
}
"""The kind of a value, by the option, by the noun and the metavar, or by the metavar alone."""
NEW = ("profile add", "ns new", "fault add")
"""Commands that take the name of something new."""


def page() -> str:
    """Return the table: a line for each noun and verb, after one for the shared options."""
    own = [each for each in typer.main.get_command(root).params if not is_shared(each)]
    lines = [_line(SHARED, "", [], _shared_options()), _line("", "", [], own, takes_shared=True)]
    for name, command in commands(every=True):
        summary = NOUNS.get(name) or (command.help or "").partition("\n")[0].partition(". ")[0].rstrip(".")
        parameters = [] if hasattr(command, "commands") else command.params
        visible = [each for each in parameters if not getattr(each, "hidden", False)]
        takes_shared = any(map(is_shared, command.params))
        plain = [each for each in visible if not is_shared(each)]
        arguments = [each for each in plain if each.param_type_name == "argument"]
        options = [each for each in plain if each.param_type_name == "option"]
        lines.append(_line(name, summary, arguments, options, takes_shared=takes_shared))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _shared_options() -> list[Any]:
    return [each for each in dict(commands())["reset"].params if is_shared(each)]


def _line(name: str, summary: str, arguments: list[Any], options: list[Any], *, takes_shared: bool = False) -> str:
    kinds = [f"{_kind(name, each)}{REST if each.nargs == -1 else ''}" for each in arguments]
    own = {SHARED: ""} if takes_shared else {}
    for each in options:
        own |= dict.fromkeys((*each.opts, *each.secondary_opts), "" if each.is_flag else _kind(name, each))
    if name != SHARED:
        own["--help"] = ""
    return f"{json.dumps(name)}: {json.dumps([summary, kinds, own], ensure_ascii=False)}"


def keys(name: str, parameter: Any) -> tuple[str, ...]:
    """Return the keys of `KINDS` for an argument or option of the command, the first that exists prevails."""
    metavar = parameter.metavar or ""
    return *parameter.opts, f"{name.partition(' ')[0]} {metavar}", metavar


def _kind(name: str, parameter: Any) -> str:
    """Return the kind of the values of an argument or option."""
    kind, metavar = parameter.type_descriptor.annotation, parameter.metavar or ""
    for key in keys(name, parameter):
        if key in KINDS and name not in NEW:
            return KINDS[key]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "|".join(kind)
    if kind is Path or metavar.removesuffix("|-") == "FILE":
        return FILES
    choices = metavar.split("|")
    if len(choices) > 1 and all(each.replace("-", "").isalpha() and each.islower() for each in choices):
        return metavar
    return NOTHING
