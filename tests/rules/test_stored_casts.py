"""A voter's casts as Redis stores them: `msgspec` reads their texts as UTF-8 only, but a note may have any bytes."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from emulator.engines.redis.entries import _casts, _note
from support.examples import examples


def text(raw: bytes) -> bytes:
    """Pack a text as `cmsgpack` in Redis does, whatever its bytes are."""
    size = len(raw)
    if size < 32:
        return bytes([0xA0 | size]) + raw
    first, width = (0xD9, 1) if size < 1 << 8 else (0xDA, 2) if size < 1 << 16 else (0xDB, 4)
    return bytes([first]) + size.to_bytes(width, "big") + raw


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.binary(max_size=300) | st.text(max_size=40).map(str.encode), min_size=1, max_size=3), st.booleans())
@example([b"\xff" * 31, b"\xff" * 32, b"\xff" * 255], True)
@example([b"\xff" * 256, b"\xff" * 65_535, b"\xff" * 65_536], False)
@example(["é".encode() * 40_000], True)
def test_each_note_is_read_as_it_was_stored(notes: list[bytes], is_whole: bool):
    number, whole = text(b"0" * 16), b"\x01" if is_whole else b""
    fields = 5 + is_whole
    packed = bytes([0x90 | len(notes)]) + b"".join(
        bytes([0x90 | fields]) + number + text(b"-99") + b"\x02" + number + text(note) + whole for note in notes
    )

    casts = _casts(packed)

    assert [("0" * 16, "-99", 2, "0" * 16, is_whole)] * len(notes) == [
        (each.number, each.choice, each.times, each.at, each.is_whole) for each in casts
    ]
    assert notes == [_note(each.note) for each in casts]
