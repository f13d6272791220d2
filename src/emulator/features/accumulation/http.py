"""Accumulation over REST: `accumulate` and `buffers`."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from emulator.callers import ANYONE, CHANNEL_WRITERS
from emulator.features.accumulation.rules import BufferEntry
from emulator.features.accumulation.service import BufferList, Buffers
from emulator.http.endpoint import CHANNEL, PAGE, Call, Nothing, Parameter, Streamed, checked_id, endpoint, id_of
from emulator.wire.json_codec import stream_array

_BUFFER = id_of("buffer")
_START = Parameter("start", "Only entries added at or after this Unix time in ms.", "integer")


class Buffer(Struct):
    """The entries of a buffer, newest first."""

    data: list[BufferEntry]
    latest: int
    """Unix ms of the newest entry in the caller's scope; 0 if there is none."""


@endpoint("POST", "/v1/e/accumulate", roles=ANYONE, body=Any, query=(_BUFFER, CHANNEL))
async def add_to_buffer(buffers: Buffers, call: Call) -> Nothing:
    """Add a JSON value to a buffer; the limit is 255 bytes of compact JSON."""
    await buffers.add(call.caller, call.channel, checked_id(call.id, "id"), call.any_body())
    return Nothing()


@endpoint("GET", "/v1/e/accumulate", roles=CHANNEL_WRITERS, answer=Buffer, query=(_BUFFER, CHANNEL, _START))
async def read_buffer(buffers: Buffers, call: Call) -> Streamed:
    """Read a buffer, newest first: the caller's channel, or all channels with an extension-level token."""
    start = call.integer("start", 0)
    latest, pages = await buffers.read(call.caller, call.channel, checked_id(call.id, "id"), start)
    return Streamed(stream_array(b'{"data":[', pages, b'],"latest":%d}' % latest))


@endpoint("GET", "/v1/e/buffers", roles=CHANNEL_WRITERS, answer=BufferList, query=PAGE)
async def list_buffers(buffers: Buffers, call: Call) -> BufferList:
    """List the buffers of a channel, or of all channels with an extension-level token.

    The order is channel, then id.
    """
    return await buffers.listing(call.caller, call.channel, call.page)


endpoints: Final = (add_to_buffer, read_buffer, list_buffers)
