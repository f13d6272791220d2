"""Answers a shell that completes a command line: reads the line from variables, prints one candidate per line.

A line stays out of the arguments, because other users can see those.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from extcli.completion import names, words

VARIABLE = "_EXTCLI_COMPLETE"
"""Names the shell. If it is set, the program completes instead of running a command."""
LINE = "_EXTCLI_LINE"
"""The command line up to the cursor."""
COMPLETE_FILES = 10
"""The exit code that makes the shell complete the name of a file."""
_BREAKS = ":="
"""Where bash splits words: it replaces only what follows the last of these."""


def complete(environ: Mapping[str, str]) -> int:
    """Print the candidates for the shell; returns the exit code. Prints nothing if anything fails."""
    shell = environ[VARIABLE].removeprefix("complete_")
    line = environ.get(LINE, "")
    if shell == "powershell":  # Typer's script has variables of its own
        line = environ.get("_TYPER_COMPLETE_ARGS", "")
        line += " " * (not environ.get("_TYPER_COMPLETE_WORD_TO_COMPLETE"))
    kind, found = candidates(line, environ) if line else (words.NOTHING, [])
    if kind == words.FILES:
        return COMPLETE_FILES
    text = "".join(f"{each}\n" for each in written(shell, line, found))
    os.write(sys.stdout.fileno(), text.encode(errors="replace"))
    return 0


def candidates(line: str, environ: Mapping[str, str]) -> tuple[str, list[tuple[str, str]]]:
    """Return the kind of the word at the cursor, and its candidates with a description each."""
    with open(os.path.join(os.path.dirname(__file__), "commands.txt"), encoding="utf-8") as file:
        table = words.read_table(file.read())
    asked = words.asked(table, line)
    if asked is None:
        return words.NOTHING, []
    found: list[tuple[str, str]]
    if asked.kind == words.COMMANDS:
        found = list(words.commands_in(table, asked.command).items())
    elif asked.kind == words.OPTIONS:
        found = [(name, "") for name in words.options_of(table, asked.command)]
    elif asked.kind in (words.FILES, words.NOTHING):
        found = []
    elif asked.kind in LIVE:
        found = names.names_of(asked.kind, asked.given, environ)
    else:
        found = [(choice, "") for choice in asked.kind.split("|")]
    matching = [(f"{asked.option}{name}", about) for name, about in found if name.startswith(asked.typed)]
    return asked.kind, [each for each in matching if each[0].isprintable()]


LIVE = ("polls", "rankings", "buffers", "sets", "namespaces", "profiles", "faults")
"""The kinds whose names are live."""


def written(shell: str, line: str, found: list[tuple[str, str]]) -> list[str]:
    """Return the candidates in the form that the script of this shell reads."""
    if shell == "fish":
        return [f"{name}\t{_one_line(about)}" for name, about in found]
    if shell == "zsh":
        return _zsh(found)
    if shell == "powershell":
        return [f"{name}:::{_one_line(about) or ' '}" for name, about in found]
    _, typed, quote = words.split(line)
    kept = 0 if quote else max(typed.rfind(char) for char in _BREAKS) + 1
    escape = _ESCAPED_IN.get(quote, _quoted)
    return [escape(name[kept:]) for name, _ in found]


def _zsh(found: list[tuple[str, str]]) -> list[str]:
    backslash = "\\"
    escaped = [(name.replace(backslash, backslash * 2).replace(":", f"{backslash}:"), about) for name, about in found]
    return [f"{name}:{_one_line(about)}" if about else name for name, about in escaped]


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _quoted(text: str) -> str:
    """Escape what bash would interpret."""
    return "".join(char if char.isalnum() or char in "-_./,:=@%+" else f"\\{char}" for char in text)


def _in_single_quotes(text: str) -> str:
    """Leave single quotes for each one in the text."""
    return text.replace("'", "'\\''")


def _in_double_quotes(text: str) -> str:
    """Escape what bash would interpret between double quotes."""
    return "".join(f"\\{char}" if char in '$`"\\' else char for char in text)


_ESCAPED_IN = {"'": _in_single_quotes, '"': _in_double_quotes}
"""How bash is kept from interpreting a name, by the quote that is open before it."""
