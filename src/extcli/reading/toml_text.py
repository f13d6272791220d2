"""Decodes TOML that a person has written. Pure."""

from __future__ import annotations

import re
from typing import Any

DEEPEST_KEY = 100
"""Parts of one dotted key. The time and memory that `tomllib` takes for a key grow with the square of its parts."""
_LARGEST_NUMBER = 1 << 4096
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{DEEPEST_KEY}}}")


def decoded(text: str) -> dict[str, Any]:
    """Return the document. Raises `ValueError`: `tomllib.TOMLDecodeError` if it is not TOML; and `RecursionError`."""
    import tomllib

    if text.count(".") >= DEEPEST_KEY and _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {DEEPEST_KEY} parts")
    document = tomllib.loads(text)
    _check_numbers(document)
    return document


def _check_numbers(document: dict[str, Any]) -> None:
    """Raise `ValueError` for a whole number that no message could show: hexadecimal ones have no limit of digits."""
    level: list[Any] = [document]
    while level:
        value = level.pop()
        if isinstance(value, dict):
            level += value.values()
        elif isinstance(value, list):
            level += value
        elif isinstance(value, int) and abs(value) >= _LARGEST_NUMBER:
            raise ValueError("a number has too many digits")
