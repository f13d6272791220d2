"""Decodes JSON that another program or a person has written. No I/O."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any, NoReturn

LARGEST_UNCOUNTED = 1 << 20
"""Bytes of a text that is decoded without counting its values."""
MOST_VALUES = 4_000_000
"""Values of one document. Each takes 30 to 100 bytes of memory, far more than in the text."""
DEEPEST = 200
"""Levels of arrays and objects. Printing a document recurses, two or three calls a level."""


def decoded(text: bytes | str, *, strict: bool = False) -> Any:
    """Return the value of a JSON text.

    Raises `ValueError`, with a reason that quotes nothing of the text, if it is not JSON, has too many values, is
    nested too deeply, or has a number of more than 4,300 digits. With `strict` also for `NaN`, `Infinity`, and a member
    that an object has twice, which it names.
    """
    raw = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    brackets = raw.count(b"[") + raw.count(b"{")
    if len(raw) > LARGEST_UNCOUNTED and raw.count(b",") + brackets > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES:,} values")
    try:
        hooks: dict[str, Any] = {"parse_constant": _refuse, "object_pairs_hook": _unique_members} if strict else {}
        value = json.loads(text, **hooks)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if brackets > DEEPEST and _is_too_deep(value):
        raise ValueError("nested too deeply")
    return value


def decoded_or_text(body: bytes | str) -> Any:
    """Return the value of a JSON text, or any other text itself."""
    try:
        return decoded(body)
    except ValueError:
        return body if isinstance(body, str) else body.decode(errors="replace")


def members(text: bytes | str) -> dict[str, Any]:
    """Return the members of a JSON object; empty if the text is not a JSON object or is too large to decode."""
    value = decoded_or_text(text)
    return value if isinstance(value, dict) else {}


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        children = chain.from_iterable(each.values() if isinstance(each, dict) else each for each in level)
        level = [child for child in children if isinstance(child, (dict, list))]
    return bool(level)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"an object has the member {name[:100]!r} twice")
        found[name] = value
    return found
