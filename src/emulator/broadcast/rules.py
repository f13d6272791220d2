"""How large a message may be, who hears it, and what its subscribers are told (rulings B2, B3, X8). Pure."""

from __future__ import annotations

import base64
import zlib
from typing import Any, Final

from msgspec import UNSET, Struct

from emulator import wire
from emulator.callers import Caller
from emulator.engines.base import Key
from emulator.errors import BadRequest

LARGEST: Final = 4_096
"""Bytes of a message, as compact JSON or else compressed and in base64 (Limits, ruling B2)."""
LONGEST_EVENT: Final = 256
CHANNEL, EXTENSION, WHISPER = "channel", "extension", "whisper"
WHISPER_TO: Final = "whisper-"


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


def checked_target(target: str) -> str:
    """The user whom a target names, empty for everybody; raises `BadRequest` for another target."""
    if target == "broadcast":
        return ""
    user_id = target.removeprefix(WHISPER_TO)
    if user_id == target or not user_id or len(user_id) > LONGEST_EVENT or not user_id.isprintable():
        raise BadRequest(
            "Invalid target", f"target: {target[:40]!r} is neither 'broadcast' nor '{WHISPER_TO}<user id>'"
        )
    return user_id


def packed(data: object) -> bytes | None:
    """Data that is over 4,096 bytes of compact JSON, as base64 of zlib; `None` for smaller data (ruling B2).

    Raises `BadRequest` for what is over 4,096 bytes in that form too.
    """
    text = wire.encode(data)
    if len(text) <= LARGEST:
        return None
    small = base64.b64encode(zlib.compress(text, 9))
    if len(small) > LARGEST:
        raise BadRequest(
            "Message too large", f"data: {len(text)} bytes, {len(small)} when compressed; at most {LARGEST} are sent"
        )
    return small


class Envelope(Struct, omit_defaults=True):
    """What the published SDK makes of a message: the event's full name, and its data."""

    event: str
    data: Any = UNSET


def page_message(event: str, data: object) -> str:
    """A message as the published SDK decodes it: JSON, or base64 of zlib of it where the data is too large.

    `event` is the full name: environment, client id and the developer's name.
    """
    text = wire.encode(Envelope(event, data))
    if data is UNSET or packed(data) is None:
        return text.decode()
    return base64.b64encode(zlib.compress(text, 9)).decode()


def bare_event(event: str, environment: str, client_id: str) -> str:
    """The developer's name of an event that may come with environment and client id before it."""
    return event.removeprefix(f"{environment}:{client_id}:")


def topics_heard(caller: Caller, channel: str, event: str) -> tuple[Key, ...]:
    """What a subscriber of an event follows: that of the channel, of the extension, and whispers to itself."""
    whispers = {spelling for name in (caller.user_id, caller.opaque_id) if name for spelling in spellings(name)}
    return (
        Key("event", caller.client_id, event, channel),
        Key("event", caller.client_id, event),
        *(Key("event", caller.client_id, event, place, user) for user in sorted(whispers) for place in (channel, "")),
    )


def spellings(user_id: str) -> tuple[str, str]:
    """A user's id with the letter and without (ruling B3)."""
    return (user_id, user_id[1:]) if user_id.startswith("U") else (user_id, f"U{user_id}")
