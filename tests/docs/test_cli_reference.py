"""docs/cli.md is the commands' own help, and the examples in that help parse."""

from __future__ import annotations

import re
import shlex

import pytest
from blocks import documents, name_of

from tools.cli_reference import commands, examples

FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
KNOWN = dict(commands())
EXAMPLES = [pytest.param(line, id=line[:60]) for command in KNOWN.values() for line in examples(command)]


def test_every_command_named_in_a_sentence_exists() -> None:
    texts = {name_of(each): re.sub(FENCED, "", each.read_text()) for each in documents()}
    named = {
        (document, words)
        for document, text in texts.items()
        for words in re.findall(r"`extcli (?:-p \w+ )?((?:[a-z][a-z-]* ?)+)", text)
    }

    assert len(named) > 10
    # Of a group's command two words count, of others one.
    assert [] == [(document, words) for document, words in sorted(named) if not _exists(*words.split())]


def _exists(noun: str, *rest: str) -> bool:
    verbs = getattr(KNOWN.get(noun), "commands", None)
    return noun in KNOWN and (verbs is None or not rest or rest[0] in verbs)


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
