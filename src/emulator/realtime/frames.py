"""WebSocket frames as bytes."""

from __future__ import annotations

from websockets.frames import Frame, Opcode


def text_frame(text: bytes) -> bytes:
    """Return an unfragmented, unmasked text frame."""
    return Frame(Opcode.TEXT, text).serialize(mask=False, extensions=[])


PING = Frame(Opcode.PING, b"").serialize(mask=False, extensions=[])
"""The ping frame sent to every connection."""
