"""JSON as people read it."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from emulator.wire import json_codec

_REORDERING: Final = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that change the order or the lines of the text around them."""


def compact(value: Any) -> str:
    """Return JSON on one line."""
    return escaped(json_codec.encode(value).decode())


def pretty(value: Any) -> str:
    """Return JSON with one member or entry per line."""
    return escaped(msgspec.json.format(json_codec.encode(value), indent=2).decode())


def escaped(text: str) -> str:
    """Return JSON in which characters that reorder text are escaped, so that it reads as it is."""
    return _REORDERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
