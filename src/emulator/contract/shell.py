"""Quotes the words of commands that are printed for copying: one rule for each kind of shell.

A pasted line must be nothing but its words. So it has no character that a terminal acts on: one that ends the line or
the paste, completes a word, or reorders text. `dashboard/static/shell.js` has the same rules.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable

_PLAIN = re.compile(r"[\w+=:./\\-]+", re.ASCII)
"""Words that mean themselves in cmd and in PowerShell."""
_REPLACED = frozenset('"$`%\u201c\u201d\u201e')
"""What ends double quotes, or is replaced within them, in cmd or in PowerShell."""
_LIVE_IN_CMD = frozenset("&|<>^%")
"""What cmd acts on within single quotes, which mean nothing to it."""


def quote_posix(word: str) -> str:
    """Return a word as sh, bash, zsh and fish read it.

    A word with characters that are not printable is in the quotes `$'…'` of bash and zsh: fish refuses the line, and sh
    passes the escapes on. NUL becomes text, as no argument can have it.
    """
    if word.isprintable():
        return re.sub(r"\\(?=[\\'])", r"'\\\\'", shlex.quote(word))  # which fish would take for one character
    text = word.replace("\0", "\\x00")
    return f"$'{''.join(each if each.isprintable() and each not in _OF_ANSI_C else _bytes(each) for each in text)}'"


_OF_ANSI_C = "'\\!"
"""What could end the quotes `$'…'` in some shell, or stands for an earlier line in old ones."""


def _bytes(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogatepass"))


def quote_windows(word: str) -> str:
    """Return a word as cmd and PowerShell read it.

    cmd cannot quote what it replaces within double quotes: such a word means itself in PowerShell, and is text in cmd.
    """
    if _PLAIN.fullmatch(word):
        return word
    is_printable = word.isprintable()
    if is_printable and not _REPLACED & set(word):
        return f'"{word}"'
    if is_printable and not _LIVE_IN_CMD & set(word) and word.count('"') % 2 == 0:  # cmd pairs them across words
        return quote_powershell(word)
    return f'"{"".join(_character(each) if each in _REPLACED or not each.isprintable() else each for each in word)}"'


def _character(character: str) -> str:
    """Return the expression of PowerShell for a character, of UTF-16."""
    units = memoryview(character.encode("utf-16-le", "surrogatepass")).cast("H")
    return "".join(f"$([char]{unit})" for unit in units)


def quote_powershell(text: str) -> str:
    """Return a text in the single quotes of PowerShell, which takes typographic quotes for them too."""
    return "'" + re.sub("['\u2018-\u201b]", r"\g<0>\g<0>", text) + "'"


quote_word: Callable[[str], str] = quote_windows if os.name == "nt" else quote_posix
"""The rule for the shells of this system."""


def join_words(words: Iterable[str], quote: Callable[[str], str] = quote_word) -> str:
    """Return words as one command."""
    return " ".join(map(quote, words))
