"""The service's WebSocket frames equal the frames of the `websockets` library."""

from __future__ import annotations

import pytest
from websockets.frames import Frame, Opcode

from emulator.realtime.connection import text_frame


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 1_000_000])
def test_a_text_frame_has_the_header_of_its_size(size: int):
    text = b"x" * size

    assert text_frame(text) == Frame(Opcode.TEXT, text).serialize(mask=False, extensions=[])
