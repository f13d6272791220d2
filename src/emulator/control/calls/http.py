"""`POST /_emulator/call`: one request of the service API, as any caller."""

from __future__ import annotations

from typing import Final

from emulator.control.calls.rules import CallBody
from emulator.control.calls.service import Called, Calls
from emulator.http.endpoint import Audience, Call, endpoint


@endpoint(
    "POST",
    "/_emulator/call",
    audience=Audience.CONTROL,
    body=CallBody,
    answer=Called,
    limit="user_list",
    is_recorded=False,
)
async def call_as(calls: Calls, call: Call) -> Called:
    """Send a request to the service as any caller, without a token.

    Roles, limits and every rule apply as usual. The status of the outer response is 200 if the call was made, whatever
    its own `status`. The journal has the call itself, under the id of this request.
    """
    return await calls.call(call.body(CallBody), call.peer)


endpoints: Final = (call_as,)
