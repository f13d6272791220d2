"""The interface between a WebSocket and the peer that handles its messages, and the encoding of frames."""

from __future__ import annotations

from struct import Struct
from typing import Protocol

from emulator.core.errors import ServiceError

_TEXT_FRAME = 0x81
"""The first byte of an unfragmented text frame."""
_SHORT, _MEDIUM, _LONG = Struct("!BB"), Struct("!BBH"), Struct("!BBQ")

PING = b"\x89\x00"
"""The ping frame sent to every connection."""


class Peer(Protocol):
    """Handles the messages of a connection. No method blocks."""

    number: int
    """Its number among the connections of the service."""

    def on_open(self) -> None:
        """Called once the WebSocket's handshake is complete."""

    def on_message(self, text: bytes | None) -> None:
        """Called for each message: UTF-8 text, or `None` for a binary one."""

    def on_service_stop(self) -> None:
        """Called when the service stops: finish the current request, then close."""

    def on_refusal(self, error: ServiceError) -> None:
        """Called when the service closes the connection because of an error or a limit."""

    def on_close(self) -> None:
        """Called when the connection is closed or lost."""


def text_frame(text: bytes) -> bytes:
    """Return an unfragmented, unmasked text frame."""
    size = len(text)
    if size < 126:
        return _SHORT.pack(_TEXT_FRAME, size) + text
    if size < 1 << 16:
        return _MEDIUM.pack(_TEXT_FRAME, 126, size) + text
    return _LONG.pack(_TEXT_FRAME, 127, size) + text
