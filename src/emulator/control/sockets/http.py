"""`/_emulator/sockets`: list, close and stall the open connections."""

from __future__ import annotations

from typing import Final

from emulator.control.sockets.rules import Closing, Stalling
from emulator.control.sockets.service import Selected, SocketList, Sockets
from emulator.http.endpoint import PAGE, Audience, Call, Parameter, endpoint

_PARAMETERS = (
    Parameter("client_id", "Only the sockets of this client id."),
    Parameter("channel_id", "Only the sockets of this channel."),
    *PAGE[1:],
)


@endpoint("GET", "/_emulator/sockets", audience=Audience.CONTROL, query=_PARAMETERS, answer=SocketList)
async def list_sockets(sockets: Sockets, call: Call) -> SocketList:
    """List the open sockets of this process, oldest first."""
    return sockets.read(call.page, call.text("client_id"), call.text("channel_id"))


@endpoint("POST", "/_emulator/sockets/close", audience=Audience.CONTROL, body=Closing, answer=Selected)
async def close_sockets(sockets: Sockets, call: Call) -> Selected:
    """Close a socket, or all, with a close code and a reason."""
    return sockets.close(call.body(Closing))


@endpoint("POST", "/_emulator/sockets/stall", audience=Audience.CONTROL, body=Stalling, answer=Selected)
async def stall_sockets(sockets: Sockets, call: Call) -> Selected:
    """Stop reading and writing one socket or all, as on a dead network; `"stalled": false` resumes.

    Messages sent during a stall are delivered at its end. A reset, closing the socket, or too many unread bytes also
    end the stall.
    """
    return sockets.stall(call.body(Stalling))


endpoints: Final = (list_sockets, close_sockets, stall_sockets)
