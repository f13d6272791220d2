"""The datastream over REST: `datastream`."""

from __future__ import annotations

from typing import Any, Final

from emulator.callers import ANYONE
from emulator.features.datastream.service import Datastream
from emulator.http.endpoint import CHANNEL, Call, Nothing, endpoint


@endpoint("POST", "/v1/e/datastream", roles=ANYONE, body=Any, query=(CHANNEL,))
async def post_event(datastream: Datastream, call: Call) -> Nothing:
    """Send any JSON to the channel's games that follow the datastream."""
    await datastream.post(call.caller, call.channel, call.any_body())
    return Nothing()


endpoints: Final = (post_event,)
