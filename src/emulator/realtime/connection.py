"""The interfaces between a WebSocket connection, the peer that handles its messages, and the application; the encoding
of frames.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, Protocol

from emulator.config.settings import Limits
from emulator.errors import ServiceError
from emulator.journal import Entry

_TEXT: Final = 0x81
"""The first byte of an unfragmented text frame."""
_SHORT, _MEDIUM, _LONG = Struct("!BB"), Struct("!BBH"), Struct("!BBQ")

PING: Final = b"\x89\x00"
"""The ping frame sent to every connection."""


class Connection(Protocol):
    """The part of a WebSocket that its peer uses."""

    request_id: str
    """The id of the handshake request."""
    address: str
    """The client's network address, as a trusted proxy gives it; empty if unknown."""
    headers: list[tuple[bytes, bytes]]
    """The headers of the handshake, until the peer is found."""
    on_bytes: Callable[[int], None] | None
    """Called with the size of received data, until authentication."""
    mark: int
    """The mark of the latest change, for the response to the handshake; 0 in production."""

    @property
    def unread(self) -> int: ...
    @property
    def is_stalled(self) -> bool: ...
    @property
    def is_reachable(self) -> bool: ...
    def send(self, text: bytes) -> None: ...
    def write(self, frame: bytes) -> None: ...
    def close(self, error: ServiceError) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def stall(self) -> None: ...
    def release(self) -> None: ...
    def reset(self) -> None: ...
    def ping(self) -> None: ...
    def allow_large_messages(self) -> None: ...


class Peer(Protocol):
    """Handles the messages of a connection. No method blocks."""

    number: int
    """Its number among the connections of the service."""

    def opened(self) -> None:
        """Called once the WebSocket's handshake is complete."""

    def received(self, text: bytes | None) -> None:
        """Called for each message: UTF-8 text, or `None` for a binary one."""

    def going_away(self) -> None:
        """Called when the service stops: finish the current request, then close."""

    def refused(self, error: ServiceError) -> None:
        """Called when the service closes the connection because of an error or a limit."""

    def closed(self) -> None:
        """Called when the connection is closed or lost."""


class PeerFactory(Protocol):
    """The application that connections belong to."""

    @property
    def limits(self) -> Limits: ...

    async def open_peer(self, path: str, query: str, connection: Connection) -> Peer:
        """Return the peer of a connection to `path`. Raises `ServiceError` and `EngineError`."""

    def refused(self, error: ServiceError) -> None:
        """Count an error that occurred before a peer was involved."""

    def record(self, path: str, entry: Callable[[str], Entry]) -> None:
        """Record a response that came from no endpoint in the journal of the path's namespace.

        `entry` builds the journal entry.
        """


def text_frame(text: bytes) -> bytes:
    """Return an unfragmented, unmasked text frame."""
    size = len(text)
    if size < 126:
        return _SHORT.pack(_TEXT, size) + text
    if size < 1 << 16:
        return _MEDIUM.pack(_TEXT, 126, size) + text
    return _LONG.pack(_TEXT, 127, size) + text
