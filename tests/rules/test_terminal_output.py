"""What a terminal shows: one color for each meaning, lines that end at words, and nothing cut off."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from extcli.journal.views import entry_text
from extcli.output import terminal


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def shown(text: str) -> str:
    terminal.print_renderable(terminal.Prose(text), screen := Screen())
    return screen.getvalue()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TERM": "xterm", "COLUMNS": "60", "NO_COLOR": ""}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("text", "colored"),
    [
        ("run `extcli stop blue`", "\x1b[36m`extcli stop blue`\x1b[0m"),
        ("  extcli explain 7", "\x1b[36m  extcli explain 7\x1b[0m"),
        ("extcli: was refused: 403 Forbidden", "\x1b[33m403 Forbidden\x1b[0m"),
        ("failed: 500 Internal Server Error", "\x1b[31m500 Internal Server Error\x1b[0m"),
        ("Why: so.\n  got       a\n  expected  b", "\x1b[31m  got       a\x1b[0m\n\x1b[32m  expected  b\x1b[0m"),
    ],
)
def test_a_meaning_has_one_color_and_none_without_colors(monkeypatch: pytest.MonkeyPatch, text: str, colored: str):
    assert colored in shown(text)
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            assert f"{text}\n" == shown(text)


def test_lines_end_at_words_and_continue_below_their_value():
    assert "clock    aaaa bbbb\n         cccc" == terminal.wrap_lines("clock    aaaa bbbb cccc", 20)
    assert "a\nhttps://long.example/word" == terminal.wrap_lines("a https://long.example/word", 9)
    assert "  extcli vote cast lunch 3" == terminal.wrap_lines("  extcli vote cast lunch 3", 9)


def entry(**members: Any) -> dict[str, Any]:
    caller = {"client_id": "c", "role": "viewer", "channel_id": "777", "user_id": "5551", "opaque_id": "U5551"}
    facts = {"kind": "request", "endpoint": "GET /v1/e/vote_logs", "path": "/v1/e/vote_logs", "status": 403}
    why = {"rule": "A4", "detail": "the role viewer may not do this; allowed: admin, backend", "reason": "no"}
    known = {"id": "d2dbfa38-11", "system_at": 1_900_000_000_123, "duration_ms": 0.3, "production": ""}
    return {**facts, **why, **known, "caller": caller, **members}


@pytest.mark.parametrize(("width", "lines"), [(60, 3), (80, 2), (119, 2), (140, 2), (200, 1)])
def test_a_line_of_the_journal_loses_ids_and_milliseconds_but_no_name_caller_or_reason(width: int, lines: int):
    text = entry_text(entry(), width).plain

    words = " ".join(text.split())
    assert [True] * 3 == [part in words for part in ("GET /v1/e/vote_logs", "viewer:5551@777", entry()["detail"])]
    assert (width >= 120, width >= 80) == ("d2dbfa38-11" in text, "0.3 ms" in text)
    assert (lines, True) == (len(text.splitlines()), max(map(len, text.splitlines())) <= width)


def test_help_is_plain_elsewhere(monkeypatch: pytest.MonkeyPatch):
    assert "Usage:\n" == terminal.colored_help("Usage:\n")
    monkeypatch.setattr(sys, "stdout", Screen())

    assert "\x1b[1mUsage:\x1b[0m\n" == terminal.colored_help("Usage:\n")
