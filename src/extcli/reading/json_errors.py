"""Explains why a typed text is not JSON: where the mistake is, and what to write instead."""

from __future__ import annotations

import json
import re
import shlex
from typing import Final

from extcli.errors import UsageError, shortened

_IN_QUOTES: Final = "put single quotes around the JSON, so that your shell keeps its double quotes: '{\"key\": 1}'"
_WORD: Final = re.compile(r"[A-Za-z][^\s\"'{}\[\]:,]*")
_COMMA_AT_END: Final = re.compile(r"\A.?,\s*[}\]]")
"""The last character in front of a mistake, and the rest: Python before 3.13 finds the bracket, and later the comma."""
_PROBLEMS: Final = {
    "Expecting value": "a value is missing, or has no double quotes",
    "Expecting property name enclosed in double quotes": "a name in double quotes is missing",
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Extra data": "the JSON has ended, and more follows",
    "Unterminated string starting at": "this text has no closing double quote",
}
"""Python's messages, in words for who wrote the text."""
_SHOWN: Final = 20
"""Characters in front of the mistake that are repeated."""


def not_json(what: str, error: ValueError | RecursionError, *, fix: str = "") -> UsageError:
    """Return the error for a text that is no JSON; `fix` replaces the advice about the shell."""
    if isinstance(error, RecursionError):
        return UsageError(f"{what} is nested too deeply")
    where, problem, advice = _finding(error) if isinstance(error, json.JSONDecodeError) else ("", str(error), "")
    return UsageError(f"{what} is not JSON", why=f"{problem} ({where})" if where else problem, fix=fix or advice)


def _finding(error: json.JSONDecodeError) -> tuple[str, str, str]:
    """Return the place of the first mistake in a JSON text, the mistake, and how to correct it."""
    text, rest = error.doc.strip(), error.doc[error.pos :].strip()
    where = _place_of_error(error)
    if not text:
        return "", "it is empty", ""
    if word := _WORD.fullmatch(text):
        return "", "a text needs double quotes", f"for your shell: {shlex.quote(json.dumps(shortened(word[0], 40)))}"
    if not rest and (missing := _closing(text)):
        return where, f"{missing} is missing at the end", f"add {missing}"
    if rest.startswith("'"):
        return where, "JSON has double quotes, not single ones", _IN_QUOTES
    if _WORD.match(rest) and error.msg.startswith("Expecting "):
        return where, "this needs double quotes", _IN_QUOTES
    if _COMMA_AT_END.search(text[: len(text) - len(rest)].rstrip()[-1:] + rest):
        return where, "no comma may stand before a closing bracket", "remove the comma"
    problem = _PROBLEMS.get(error.msg, error.msg[:1].lower() + error.msg[1:])
    return where, problem, "" if error.msg in _PROBLEMS else _IN_QUOTES


def _place_of_error(error: json.JSONDecodeError) -> str:
    before = shortened(error.doc[: error.pos].rsplit("\n", 1)[-1][-_SHOWN:])
    line = f"line {error.lineno}, " if "\n" in error.doc.strip() else ""
    return f"{line}column {error.colno}" + (f", after {before}" if before else "")


def _closing(text: str) -> str:
    """Return the brackets that are open at the end of a text, as they would be closed."""
    closing = {"{": "}", "[": "]"}
    missing = ""
    for bracket in re.findall(r"[{}\[\]]", re.sub(r'"(\\.|[^"\\])*"', "", text)):
        missing = closing[bracket] + missing if bracket in closing else missing[1:]
    return missing
