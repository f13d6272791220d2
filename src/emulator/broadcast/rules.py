"""How large a message may be, who hears it, and what its subscribers are told (rulings B2, B3, X8). Pure."""

from __future__ import annotations

import base64
import zlib
from typing import Any, Final

from msgspec import Struct

from emulator import wire
from emulator.callers import Caller
from emulator.engines.base import Key
from emulator.errors import BadRequest

LARGEST: Final = 4_096
"""Bytes of a message, as compact JSON or else compressed and in base64 (Limits, ruling B2)."""
LONGEST_EVENT: Final = 256
CHANNEL, EXTENSION, WHISPER = "channel", "extension", "whisper"


class Event(Struct):
    """What subscribers of an event are told."""

    event: str
    data: Any
    channel_id: str
    """Empty for an event of the whole extension."""
    scope: str
    """`channel`, `extension` or `whisper`."""


def checked_event(event: str) -> str:
    """The name of a message thread: 1 to 256 printable characters."""
    if not event or len(event) > LONGEST_EVENT or not event.isprintable():
        raise BadRequest("Invalid event", f"event: 1 to {LONGEST_EVENT} printable characters")
    return event


def check_size(data: object) -> None:
    """Raise `BadRequest` for data that is over 4,096 bytes of compact JSON, and still after zlib and base64."""
    text = wire.encode(data)
    if len(text) <= LARGEST:
        return
    packed = len(base64.b64encode(zlib.compress(text)))
    if packed > LARGEST:
        raise BadRequest(
            "Message too large", f"data: {len(text)} bytes, {packed} when compressed; at most {LARGEST} are sent"
        )


def topics_heard(caller: Caller, channel: str, event: str) -> tuple[Key, ...]:
    """What a subscriber of an event follows: that of the channel, of the extension, and whispers to itself."""
    whispers = {spelling for name in (caller.user_id, caller.opaque_id) if name for spelling in spellings(name)}
    return (
        Key("event", caller.client_id, event, channel),
        Key("event", caller.client_id, event),
        *(Key("event", caller.client_id, event, channel, whisper) for whisper in sorted(whispers)),
    )


def spellings(user_id: str) -> tuple[str, str]:
    """A user's id with the letter and without (ruling B3)."""
    return (user_id, user_id[1:]) if user_id.startswith("U") else (user_id, f"U{user_id}")
