"""Quotes the commands that extcli prints, for the shells of this system."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable

_PLAIN = re.compile(r"[\w@+=:,./\\-]+", re.ASCII)
"""Words that mean themselves in cmd and in PowerShell."""
_EXPANDED = frozenset('"$`%')
"""Characters that cmd or PowerShell would replace within double quotes."""


def quoted(word: str, *, is_windows: bool = os.name == "nt") -> str:
    """Return a word as a shell reads it: a POSIX shell, or cmd and PowerShell.

    cmd has no way to quote what it replaces within double quotes. Such a word is quoted for PowerShell alone.
    """
    if not is_windows:
        return shlex.quote(word)
    if _PLAIN.fullmatch(word):
        return word
    return "'" + word.replace("'", "''") + "'" if _EXPANDED & set(word) else f'"{word}"'


def joined(words: Iterable[str], *, is_windows: bool = os.name == "nt") -> str:
    """Return words as one command."""
    return " ".join(quoted(word, is_windows=is_windows) for word in words)
