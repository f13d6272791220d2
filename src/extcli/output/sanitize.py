"""Makes untrusted text safe to print, so that it cannot move the cursor, color the terminal or break a row."""

from __future__ import annotations

import json
import re

# Control characters, and those that reorder or end a line.
_UNSAFE_BEYOND_ASCII = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = re.compile(f"[\x00-\x1f{_UNSAFE_BEYOND_ASCII}]")
_UNSAFE_IN_LINES = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f{_UNSAFE_BEYOND_ASCII}]|\r(?!\n)")
_NUMBERS = re.compile(r"\[\n\s+([-+.\deE]+(?:,\n\s+[-+.\deE]+)*)\n\s*\]")
_SHORT_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def visible(text: str) -> str:
    """Return the text with control and bidirectional characters escaped (`\\x1b`)."""
    return _UNSAFE.sub(_escape, text)


def visible_lines(text: str) -> str:
    """Return a text of several lines, each as `visible` returns it."""
    return "\n".join(map(visible, text.split("\n")))


def printable(text: str) -> str:
    """Return lines of text with control and bidirectional characters escaped as in JSON, so that JSON stays equal."""
    return _UNSAFE_IN_LINES.sub(_json_escape, text)


def field(value: object) -> str:
    """Return a value as a field of plain output or CSV: a text as it is, any other value as JSON."""
    return value if isinstance(value, str) else json_text(value)


def json_text(value: object) -> str:
    """Return a value as one line of JSON that is safe to print."""
    return _UNSAFE.sub(_json_escape, compact(value))


def pretty_json(value: object) -> str:
    """Return a value as indented JSON that is safe to print. A list of numbers takes one line."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    text = _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text)
    return "\n".join(_UNSAFE.sub(_json_escape, line) for line in text.split("\n"))


def compact(value: object) -> str:
    """Return a value as JSON on one line. `Decimal`, which ijson returns for numbers, becomes a float."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=float)


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    number = ord(character)
    return _SHORT_ESCAPES.get(character) or (f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}")


def _json_escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"
