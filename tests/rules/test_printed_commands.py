"""Words of the commands that extcli prints, for the shells of each system."""

from __future__ import annotations

import pytest

from extcli.shell import joined, quoted


@pytest.mark.parametrize(
    ("word", "on_posix", "on_windows"),
    [
        ("lunch", "lunch", "lunch"),
        ("", "''", '""'),
        ("two words", "'two words'", '"two words"'),
        ("C:\\data\\x.db", "'C:\\data\\x.db'", "C:\\data\\x.db"),
        ("a;b&c", "'a;b&c'", '"a;b&c"'),
        ("it's", "'it'\"'\"'s'", '"it\'s"'),
        ('{"key": 1}', "'{\"key\": 1}'", "'{\"key\": 1}'"),
        ("it's $5", "'it'\"'\"'s $5'", "'it''s $5'"),
        ("100%", "100%", "'100%'"),
    ],
)
def test_a_word_is_quoted_for_the_shells_of_the_system(word: str, on_posix: str, on_windows: str):
    assert (on_posix, on_windows) == (quoted(word, is_windows=False), quoted(word, is_windows=True))


def test_a_command_is_its_quoted_words():
    words = ["extcli", "explain", "a b"]

    assert "extcli explain 'a b'" == joined(words, is_windows=False)
    assert 'extcli explain "a b"' == joined(words, is_windows=True)
