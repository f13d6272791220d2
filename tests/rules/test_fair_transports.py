"""Transports share the event loop: long reads are handed over in pieces, and many connections flushed in steps."""

from __future__ import annotations

import asyncio
from typing import Any

from emulator.wire.coalescing_transport import LONG_PIECE, SHORT_PIECE, CoalescingTransport, flush_batch_of


class Wire(asyncio.Transport):
    """The transport of the event loop, without a network."""

    def __init__(self, protocol: Any = None) -> None:
        super().__init__()
        self.protocol = protocol
        self.reads = True
        self.closing = False
        self.written: list[bytes] = []

    def get_protocol(self) -> Any:
        return self.protocol

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))


class Reader:
    """A protocol that keeps its pieces, and can pause reading after each."""

    def __init__(self, *, pauses: bool = False) -> None:
        self.wire = Wire(self)
        self.transport = CoalescingTransport(self.wire, flush_batch_of(asyncio.get_running_loop()))
        self.pieces: list[bytes] = []
        self._pauses = pauses

    def received(self, data: bytes, piece: int = SHORT_PIECE) -> None:
        self.transport.hand_over(data, self.piece_received, piece)

    def piece_received(self, data: bytes) -> None:
        self.pieces.append(data)
        if self._pauses:
            self.transport.pause_reading()


DATA = bytes(range(256)) * 100
"""25,600 bytes."""


async def test_a_short_read_is_handed_over_at_once():
    reader = Reader()

    reader.received(DATA[:SHORT_PIECE])

    assert ([DATA[:SHORT_PIECE]], True) == (reader.pieces, reader.wire.reads)


async def test_a_long_read_is_handed_over_in_pieces_of_4_kib_one_per_pass():
    reader = Reader()
    reader.received(DATA)

    for passes in range(8):
        assert min(passes, 7) == len(reader.pieces)
        await asyncio.sleep(0)

    assert DATA == b"".join(reader.pieces)
    assert SHORT_PIECE == max(map(len, reader.pieces))


async def test_the_body_of_a_request_is_handed_over_in_pieces_of_16_kib():
    reader = Reader()
    reader.received(DATA, LONG_PIECE)

    for _ in range(3):
        await asyncio.sleep(0)

    assert [LONG_PIECE, len(DATA) - LONG_PIECE] == list(map(len, reader.pieces))


async def test_nothing_is_read_while_pieces_wait():
    reader = Reader()
    reader.received(DATA)

    read = []
    while b"".join(reader.pieces) != DATA:
        read.append(reader.wire.reads)
        await asyncio.sleep(0)

    assert ({False}, True) == (set(read), reader.wire.reads)


async def test_a_protocol_that_pauses_receives_no_piece_until_it_resumes():
    reader = Reader(pauses=True)
    reader.received(DATA)

    for number in range(1, 8):
        for _ in range(3):
            await asyncio.sleep(0)
        assert (number, False) == (len(reader.pieces), reader.wire.reads)
        reader.transport.resume_reading()

    assert (DATA, True) == (b"".join(reader.pieces), reader.wire.reads)


async def test_pieces_go_to_the_protocol_of_an_upgrade():
    reader, upgraded = Reader(), Reader()
    reader.received(DATA)
    reader.wire.protocol = upgraded

    for _ in range(8):
        await asyncio.sleep(0)

    assert ([], DATA) == (reader.pieces, b"".join(upgraded.pieces))


async def test_a_closing_connection_drops_what_it_received():
    reader = Reader()
    reader.received(DATA)
    await asyncio.sleep(0)
    reader.wire.closing = True

    for _ in range(8):
        await asyncio.sleep(0)

    assert [DATA[:SHORT_PIECE]] == reader.pieces


async def test_at_most_250_connections_are_flushed_in_one_pass():
    batch = flush_batch_of(asyncio.get_running_loop())
    wires = [Wire() for _ in range(600)]
    for number, wire in enumerate(wires):
        CoalescingTransport(wire, batch).write(b"%d" % number)

    flushed = []
    for _ in range(4):
        await asyncio.sleep(0)
        flushed.append(sum(bool(wire.written) for wire in wires))

    assert [250, 500, 600, 600] == flushed
    assert [[b"%d" % number] for number in range(600)] == [wire.written for wire in wires]
