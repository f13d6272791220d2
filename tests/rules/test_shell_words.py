"""The words of the commands that send a recorded request again."""

from __future__ import annotations

import subprocess

import pytest

from emulator.control.journal.snippets import quote, snippet_of
from emulator.journal import REQUEST, Entry

TEXTS = [
    "",
    "rps",
    "a b",
    "it's",
    "$(id)",
    "`id`",
    "a\\nb",
    "two\nlines",
    "\x1b[201~\nid",
    "\x1b'\\",
    "\u202e'x",
    "é\t\x7f1",
]


@pytest.mark.parametrize("text", TEXTS)
def test_bash_reads_a_quoted_word_unchanged(text: str):
    done = subprocess.run(["bash", "-c", f"printf %s {quote(text)}"], capture_output=True, text=True, check=True)

    assert text == done.stdout


@pytest.mark.parametrize("text", TEXTS)
def test_a_word_does_not_control_the_terminal(text: str):
    assert quote(text).replace("\n", "").isprintable()


@pytest.mark.parametrize("form", ["curl", "extcli"])
def test_a_command_does_not_control_the_terminal(form: str):
    entry = Entry(REQUEST, 0, 0, "1", None, "POST /v1/e/vote", "/v1/e/vote?id=%1B[201~%0Aid", 400)
    entry.request, entry.request_size = b'{"a": "\x1b[31m"}', 15

    assert snippet_of(entry, form, "").replace("\n", "").isprintable()
