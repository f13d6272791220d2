"""Names of topics, and checks of the control API's requests about connections. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from emulator.engines.shapes import Key
from emulator.wire.refusals import invalid_member, too_long, wrong_shape

WEB_PAGE: Final = "page"
"""The target that counts pages; the kind of a page's connection."""
GAME: Final = "game"
"""The kind of a game's connection."""
KINDS: Final[Mapping[str, str]] = {
    "poll": "poll",
    "event": "event",
    WEB_PAGE: WEB_PAGE,
    "state:channel": "channel_state",
    "state:extension": "extension_state",
    "config:channel": "channel_config",
    "config:extension": "extension_config",
    "authentication": "authentication",
    "transaction": "purchase",
    "datastream": "datastream",
}
"""The kinds of topics by target, as a game subscribes to it. A page subscribes to its channel."""
_TARGETS: Final = {kind: target for target, kind in KINDS.items()}
MAX_REASON: Final = 123
"""Bytes of the reason in a close frame, by RFC 6455."""
_STANDARD_CODES: Final = frozenset({1000, 1001, 1002, 1003, *range(1007, 1015)})
"""The codes below 3000 that an endpoint may send."""
DEFAULT_CODE: Final = 4000


class Selection(Struct):
    """The connections to act on: one by its number, or all."""

    socket: int | None = None
    all: bool = False


class Closing(Selection):
    """The connections to close, and the code and reason for their clients."""

    code: int = DEFAULT_CODE
    """A close code: 1000 to 1003, 1007 to 1014, 3000 to 4999."""
    reason: str = ""


class Stalling(Selection):
    """The connections to stall, or with `stalled` false to release."""

    stalled: bool = True


def topic_name(topic: Key) -> str:
    """Return a topic as a game names it: `poll:lunch`, `event:*`, `state:channel`."""
    target = _TARGETS.get(topic.kind, topic.kind)
    return f"{target}:{topic.name}" if topic.name else target


def check_selection(selection: Selection) -> None:
    """Raise `BadRequest` unless the selection names one connection or all."""
    if (selection.socket is None) == (not selection.all):
        raise wrong_shape("socket, all", needed='the number of one socket, or {"all": true}')


def check_closing(closing: Closing) -> None:
    """Raise `BadRequest` for a close code that may not be sent, and for a reason that a frame cannot hold."""
    if closing.code not in _STANDARD_CODES and not 3000 <= closing.code <= 4999:
        raise invalid_member("code", closing.code, "within 1000 to 1003, 1007 to 1014 or 3000 to 4999")
    if (size := len(closing.reason.encode())) > MAX_REASON:
        raise too_long("reason", size=size, unit="bytes", limit=MAX_REASON)
