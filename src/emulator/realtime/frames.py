"""WebSocket frames as bytes."""

from __future__ import annotations

from struct import Struct
from typing import Final

_TEXT: Final = 0x81
"""The first byte of an unfragmented text frame."""
_SHORT, _MEDIUM, _LONG = Struct("!BB"), Struct("!BBH"), Struct("!BBQ")

PING: Final = b"\x89\x00"
"""The ping frame sent to every connection."""


def text_frame(text: bytes) -> bytes:
    """Return an unfragmented, unmasked text frame."""
    size = len(text)
    if size < 126:
        return _SHORT.pack(_TEXT, size) + text
    if size < 1 << 16:
        return _MEDIUM.pack(_TEXT, 126, size) + text
    return _LONG.pack(_TEXT, 127, size) + text
