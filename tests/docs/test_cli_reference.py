"""docs/cli.md is the commands' own help, and the examples in that help parse."""

from __future__ import annotations

import re
import shlex

import pytest
from blocks import documents, name_of

from extcli.errors import ExitCode
from tools.cli_reference import FILE, commands, examples, page

FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
KNOWN = dict(commands())
EXAMPLES = [pytest.param(line, id=line[:60]) for command in KNOWN.values() for line in examples(command)]


def test_the_reference_is_up_to_date() -> None:
    assert page() == FILE.read_text(encoding="utf-8"), "run: PYTHONPATH=tests python -m tools.cli_reference"


def test_every_command_is_in_the_reference() -> None:
    text = FILE.read_text(encoding="utf-8")

    assert set() == {name for name in KNOWN if f" extcli {name}\n" not in text}


def test_every_exit_code_is_in_the_reference() -> None:
    table = re.findall(r"^\| (\d+) \|", FILE.read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(ExitCode) == [int(code) for code in table]


def test_every_command_has_an_example() -> None:
    assert [] == [name for name, each in KNOWN.items() if not hasattr(each, "commands") and not examples(each)]


def test_the_help_of_a_command_shows_the_command_itself() -> None:
    """Another command that shares its function has its own help. A group that is a command also shows its verbs."""
    lines = {name: examples(each) for name, each in KNOWN.items()}

    assert [] == [
        name for name, shown in lines.items() if shown and not any(f"extcli {name}" in each for each in shown)
    ]


def test_every_command_named_in_a_sentence_exists() -> None:
    texts = {name_of(each): re.sub(FENCED, "", each.read_text()) for each in documents()}
    named = {
        (document, words)
        for document, text in texts.items()
        for words in re.findall(r"`extcli (?:-p \w+ )?((?:[a-z][a-z-]* ?)+)", text)
    }

    assert len(named) > 10
    # Of a group's command two words count, of others one.
    assert [] == [
        (document, words)
        for document, words in sorted(named)
        if (first := words.split()[0]) not in KNOWN
        or (hasattr(KNOWN[first], "commands") and len(words.split()) > 1 and " ".join(words.split()[:2]) not in KNOWN)
    ]


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_of_the_help_parses(line: str) -> None:
    plain = re.sub(r'(?:\b[A-Z_]+=)?"?[$<]\((.*?)\)"?', r"; \1 ;", line)
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=";|&<>")
    lexer.whitespace_split = True
    calls: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set(";|&<>"):
            calls.append([])
        else:
            calls[-1].append(word)

    found = [call[1:] for call in calls if call[:1] == ["extcli"]]
    assert found
    for args in found:
        name, command = args[0], KNOWN[args.pop(0)]
        if hasattr(command, "commands") and not (command.invoke_without_command and "".join(args[:1])[:1] == "-"):
            name = args.pop(0)
            command = command.commands[name]
        command.make_context(name, args).close()
