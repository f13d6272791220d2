"""Checks of texts that clients send."""

from __future__ import annotations

from emulator.errors import BadRequest


def checked_text(text: str, longest: int, *, reason: str, name: str) -> str:
    """Return a text of 1 to `longest` printable characters; raise `BadRequest` naming the field otherwise."""
    if not 1 <= len(text) <= longest or not text.isprintable():
        raise BadRequest(reason, f"{name}: must be 1 to {longest} printable characters")
    return text
