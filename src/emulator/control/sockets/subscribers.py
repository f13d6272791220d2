"""Counts open sockets, and the subscribers of a topic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from emulator.control.sockets.rules import KINDS, WEB_PAGE
from emulator.engines.shapes import Key
from emulator.realtime.hub import ANY_NAME, Hub
from emulator.wire.refusals import invalid_parameter

CONNECTED: Final = "connected"
_NAMED: Final = ("poll", "event")
_IN_CHANNEL: Final = ("event", WEB_PAGE)
"""Kinds whose subscribers in a channel also follow the topic of all channels. That topic counts for no channel."""


@dataclass(eq=False, repr=False)
class Subscribers:
    """The subscribers in this process."""

    _hub: Hub
    _connections: Callable[[], int]

    def __call__(self, id: str, client_id: str, channel: str | None) -> int:
        """Return the number of open connections for the id `connected`, otherwise of the topic's subscribers.

        A topic is a target of the socket, such as `state:channel`, `poll:lunch` or `event:goal`; `page` counts pages.
        Raises `BadRequest` for an unknown one.
        """
        if id == CONNECTED:
            return self._connections()
        target, _, name = id.partition(":")
        kind = KINDS.get(target if target in _NAMED else id)
        if kind is None or (target in _NAMED and not name):
            known = ", ".join(f"{each}:NAME" if each in _NAMED else each for each in (CONNECTED, *KINDS))
            raise invalid_parameter("id", id, f"one of {known}")

        def matches(topic: Key) -> bool:
            here = topic.channel == channel or (not topic.channel and kind not in _IN_CHANNEL)
            return (
                topic.kind == kind
                and (target not in _NAMED or topic.name in (name, ANY_NAME))
                and (not client_id or topic.owner in ("", client_id))
                and (channel is None or here)
            )

        return self._hub.count(matches)
