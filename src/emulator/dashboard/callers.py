"""The callers that forms suggest, and the viewers that screens show."""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

from emulator.callers import Caller, Role, opaque_id_of
from emulator.dashboard.rig.arrangement import DEFAULT_CHANNEL, DEFAULT_CLIENT
from emulator.dashboard.screen import Query, Service

_LOOKED_AT: Final = 100
"""Entries of the journal in which a caller is looked for."""


class Suggested(NamedTuple):
    """An extension and a channel that exist, if there is one."""

    client_id: str
    channel_id: str


def suggested(service: Service, query: Query) -> Suggested:
    """Return the client id and channel of the query; where one is absent, a known one."""
    client_id, channel_id = query.get("client_id", ""), query.get("channel_id", "")
    for entry in islice(service.journal.newest(), _LOOKED_AT):
        if client_id and channel_id:
            break
        if entry.caller is not None and client_id in ("", entry.caller.client_id):
            client_id = entry.caller.client_id
            channel_id = channel_id or entry.caller.channel_id or ""
    return Suggested(
        client_id or min(service.extensions.current, default=DEFAULT_CLIENT), channel_id or DEFAULT_CHANNEL
    )


async def viewer_of(service: Service, client_id: str, channel_id: str, user: str) -> Caller:
    """Return the viewer with this user id or opaque id, as votes, stores and codes know them."""
    is_id = user.isdecimal()
    opaque_id = opaque_id_of(user) if is_id else user
    caller = Caller(client_id, Role.VIEWER, channel_id, user if is_id else None, opaque_id, is_opaque_id_derived=is_id)
    known, _ = await service.dispatcher.identify(caller, writes=False)
    return known
