"""What the word at the cursor of a command line may be, from a small table of commands."""

from __future__ import annotations

import pytest

from extcli.completion import NOTHING, CommandLine, shell_lines

SHARED = {"-p": "profiles", "--profile": "profiles", "--url": "-", "-q": "", "--quiet": ""}
TABLE = {
    "*": ("", [], SHARED),
    "": ("", [], {"*": "", "--version": ""}),
    "vote": ("Polls", [], {"*": "", "--help": ""}),
    "vote get": ("Print it", ["polls"], {"*": "", "--top": "-", "--help": ""}),
    "vote cast": ("Cast it", ["polls"], {"*": "", "--from": "files", "--help": ""}),
    "listen": ("Print events", ["events..."], {"*": "", "--count": "-"}),
    "connect": ("Print lines", ["js|cpp"], {"*": ""}),
    "serve": ("Start", [], {"--log-format": "text|json"}),
}

LINES = [
    ("extcli ", "commands", "", ""),
    ("extcli vote ", "commands", "", "vote"),
    ("extcli vote get lun", "polls", "lun", "vote get"),
    ("extcli vote get --top 3 lun", "polls", "lun", "vote get"),
    ("extcli -q vote get lun", "polls", "lun", "vote get"),
    ("EXTCLI_AS=backend extcli vote get ", "polls", "", "vote get"),
    ("extcli vote get -", "options", "-", "vote get"),
    ("extcli vote cast --from=b", "files", "b", "vote cast"),
    ("extcli -p ", "profiles", "", ""),
    ("extcli listen one two thr", "events", "thr", "listen"),
    ("extcli listen -- --str", "events", "--str", "listen"),
    ("extcli connect j", "js|cpp", "j", "connect"),
    ("extcli vote get 'my po", "polls", "my po", "vote get"),
    ("extcli vote get my\\ po", "polls", "my po", "vote get"),
]


@pytest.mark.parametrize(("line", "kind", "typed", "command"), LINES)
def test_the_word_at_the_cursor_has_a_kind(line: str, kind: str, typed: str, command: str) -> None:
    found = CommandLine(TABLE, line)

    assert (kind, typed, command) == (found.kind, found.typed, found.command)


@pytest.mark.parametrize(
    "line", ["extcli nothing ", "extcli vote get lunch more", "extcli serve x", "extcli serve --x=1"]
)
def test_some_words_have_no_candidates(line: str) -> None:
    assert CommandLine(TABLE, line).kind == NOTHING


@pytest.mark.parametrize(
    ("shell", "line", "name", "text"),
    [
        ("bash", "extcli vote get ", "two words", "two\\ words"),
        ("bash", "extcli vote get ", "$(rm -r x)", "\\$\\(rm\\ -r\\ x\\)"),
        ("bash", "extcli vote get 'two", "two words", "two words"),
        ("bash", "extcli vote get 'it", "it's", "it'\\''s"),
        ("bash", 'extcli vote get "my', "my$poll", "my\\$poll"),
        ("bash", 'extcli vote get "', '$(x)`"\\', '\\$(x)\\`\\"\\\\'),
        ("bash", "extcli vote get a:b", "a:bc", "bc"),
        ("zsh", "extcli vote get ", "a:b", "a\\:b:about it"),
        ("fish", "extcli vote get ", "a b", "a b\tabout it"),
    ],
)
def test_a_candidate_is_written_as_its_shell_reads_it(shell: str, line: str, name: str, text: str) -> None:
    assert [text] == shell_lines(shell, CommandLine(TABLE, line), [(name, "about it")])
