"""What the service needs of transports beyond asyncio: short reads, and an end by RST."""

from __future__ import annotations

import asyncio
import socket
import struct

_LONGEST_READ = 8 * 1024
"""Bytes: up to 1,400 messages, or 450 requests."""


class ShortReads(asyncio.BufferedProtocol):
    """Hands over what arrives to a protocol, a few KiB in one pass of the event loop.

    A read of 256 KiB, as event loops do by themselves, may bring 40,000 messages, and nothing else would run meanwhile.
    """

    __slots__ = ("_buffer", "_protocol")

    def __init__(self, protocol: asyncio.Protocol) -> None:
        self._protocol = protocol

    def get_buffer(self, sizehint: int) -> memoryview:
        self._buffer = memoryview(bytearray(_LONGEST_READ))  # asyncio's TLS writes to slices, which must be no copies
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._protocol.data_received(bytes(self._buffer[:nbytes]))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._protocol.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()


def end_writing(transport: asyncio.Transport, *, expects_more: bool = True) -> None:
    """Send no more. The caller discards what arrives, and aborts the connection later.

    A close with unread bytes would reset the connection, and the other side might never read the last bytes sent. TLS
    cannot end one direction only, so it closes if nothing more is expected, and otherwise waits for the abort.
    """
    if transport.can_write_eof():
        transport.write_eof()
    elif not (expects_more or transport.is_closing()):
        transport.close()


def reset_connection(transport: asyncio.Transport) -> None:
    """Close a connection at once with RST, which discards unsent bytes."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
