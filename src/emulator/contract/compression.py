"""The compression of messages to pages, which the command line measures too (ruling B2)."""

from __future__ import annotations

import base64
import zlib

from emulator.contract.limits import MAX_MESSAGE_BYTES

_STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY)
"""Lists of numbers are often smaller by the others. Every decoder reads all of them."""


def compress(text: bytes, level: int = 9) -> bytes:
    """Return base64 of zlib by the first strategy with at most 4,096 bytes, otherwise the shortest."""
    found = []
    for strategy in _STRATEGIES:
        compressor = zlib.compressobj(level, strategy=strategy)
        found.append(base64.b64encode(compressor.compress(text) + compressor.flush()))
        if len(found[-1]) <= MAX_MESSAGE_BYTES:
            return found[-1]
    return min(found, key=len)
