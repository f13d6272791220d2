"""Checks of texts that clients send."""

from __future__ import annotations

from emulator.wire.refusals import invalid_text


def checked_text(text: str, longest: int, *, reason: str, name: str) -> str:
    """Return a text of 1 to `longest` printable characters; raise `BadRequest` naming the field otherwise."""
    if not 1 <= len(text) <= longest or not text.isprintable():
        raise invalid_text(reason=reason, field=name, size=len(text), longest=longest)
    return text
