"""A text as a WebSocket frame; the library knows how."""

from __future__ import annotations

from websockets.frames import Frame, Opcode


def text_frame(text: bytes) -> bytes:
    """One unfragmented text frame, as a server sends it."""
    return Frame(Opcode.TEXT, text).serialize(mask=False, extensions=[])


PING = Frame(Opcode.PING, b"").serialize(mask=False, extensions=[])
"""The ping that all connections are sent; whoever answers anything is alive."""
