"""Determines which kinds of words may be completed at the cursor. Pure functions on the text of a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

FILES = "files"
NOTHING = "-"
SHARED = "*"
"""The name of the line with the shared options and, among the options of a command, that it takes them."""
REST = "..."
_NOUNS = ""


class Command(NamedTuple):
    """One line of the table of commands."""

    summary: str
    arguments: tuple[str, ...]
    """The kind of each argument: `polls`, `files`, `a|b` for choices, `-` for others. The last may end with `...`."""
    options: tuple[str, ...]
    """`--yes`, or `--from=files` for an option with a value of that kind."""


Table = Mapping[str, Command]


class Asked(NamedTuple):
    """The word to complete: its text so far and the kinds of words that it may be."""

    kind: str
    """A kind of argument, or `options` or `commands`."""
    typed: str
    """The text before the cursor, without the option's name in `--option=value`."""
    option: str
    """`--option=` if the value follows in the same word, otherwise empty."""
    command: str
    """The command, as in the table."""
    given: Mapping[str, str]
    """The options with values before the cursor."""


OPTIONS, COMMANDS = "options", "commands"


def read_table(text: str) -> dict[str, Command]:
    """Parse the table of commands: one line each, with name, summary, arguments and options between tabs."""
    fields = (line.split("\t") for line in text.splitlines())
    return {name: Command(about, tuple(args.split()), tuple(options.split())) for name, about, args, options in fields}


def split(line: str) -> tuple[list[str], str, str]:
    """Return the words before the cursor, the unfinished word, and the quote that is open in it."""
    words, word, quote, escaped, started = [], "", "", False, False
    for char in line:
        if escaped:
            word, escaped = word + char, False
        elif char == "\\" and quote != "'":
            escaped = started = True
        elif quote:
            quote, word = ("", word) if char == quote else (quote, word + char)
        elif char in "'\"":
            quote, started = char, True
        elif char.isspace():
            if started:
                words.append(word)
            word, started = "", False
        else:
            word, started = word + char, True
    return words, word, quote


class _Before(NamedTuple):
    """The words before the cursor."""

    command: str
    arguments: int
    """How many arguments the command has so far."""
    given: Mapping[str, str]
    """The options with values."""
    waiting: str
    """The option whose value comes next; empty for none."""
    has_ended: bool
    """Whether `--` has ended the options."""


def words_at_end(table: Table, line: str) -> Asked | None:
    """Return which words may stand at the end of the line; `None` if no command has a word there."""
    words, typed, _ = split(line)
    while words and "=" in words[0]:
        words.pop(0)  # an assignment before the program's name
    before = _read(table, words[1:])
    if before is None:
        return None
    command, given, option = before.command, before.given, ""
    if before.waiting:
        kind = _kind_of_option(table, command, before.waiting)
    elif typed.startswith("-") and not before.has_ended:
        name, equals, value = typed.partition("=")
        kind = _kind_of_option(table, command, name) if equals else OPTIONS
        if equals:
            typed, option = value, f"{name}="
    elif _is_group(table, command):
        kind = COMMANDS
    else:
        kind = _kind_of_argument(table[command].arguments, before.arguments)
    return Asked(kind, typed, option, command, given) if kind else None


def _read(table: Table, words: Sequence[str]) -> _Before | None:
    """Parse the words after the program's name; `None` if they name no command."""
    command, arguments, waiting, given, has_ended = "", 0, "", {}, False
    for word in words:
        if waiting:
            given[waiting], waiting = word, ""
        elif word == "--" and not has_ended:
            has_ended = True
        elif word.startswith("-") and word != "-" and not has_ended:
            name, equals, value = word.partition("=")
            if equals:
                given[name] = value
            elif _kind_of_option(table, command, name):
                waiting = name
        elif _is_group(table, command):
            command = f"{command} {word}".strip()
            if command not in table:
                return None
        else:
            arguments += 1
    return _Before(command, arguments, given, waiting, has_ended)


def commands_in(table: Table, group: str) -> dict[str, str]:
    """Return the nouns, or the verbs of a noun, with their summaries."""
    start = f"{group} " if group else ""
    inside = {name[len(start) :]: each.summary for name, each in table.items() if name.startswith(start)}
    return {name: summary for name, summary in inside.items() if name and name != SHARED and " " not in name}


def options_of(table: Table, command: str) -> list[str]:
    """Return the names of the long options of a command or group."""
    return sorted(each.partition("=")[0] for each in _options(table, command) if each.startswith("--"))


def _is_group(table: Table, command: str) -> bool:
    return command == _NOUNS or any(name.startswith(f"{command} ") for name in table)


def _options(table: Table, command: str) -> tuple[str, ...]:
    own = table[command].options if command in table else (SHARED,)
    return own + (table[SHARED].options if SHARED in own else ())


def _kind_of_argument(kinds: tuple[str, ...], index: int) -> str:
    """Return the kind of the argument at this index; empty if the command has none there."""
    if index < len(kinds):
        return kinds[index].removesuffix(REST)
    return kinds[-1].removesuffix(REST) if kinds and kinds[-1].endswith(REST) else ""


def _kind_of_option(table: Table, command: str, name: str) -> str:
    """Return the kind of the option's value; empty for a flag or an unknown option."""
    values = dict(each.split("=", 1) for each in _options(table, command) if "=" in each)
    return values.get(name, "")
