"""How large a message may be, who hears it, and what its subscribers are told (rulings B2, B3, X8). Pure."""

from __future__ import annotations

import base64
import zlib
from typing import Any, Final

from msgspec import UNSET, Struct

from emulator.callers import Caller
from emulator.engines.base import Key
from emulator.errors import BadRequest
from emulator.wire import json_codec

LARGEST: Final = 4_096
"""Bytes of a message, as compact JSON or else compressed and in base64 (Limits, ruling B2)."""
_LARGEST_SQUEEZED: Final = LARGEST // 4 * 3
"""Bytes of zlib that base64 makes no more than that of."""
_LARGEST_PLAIN: Final = 512 * 1024
"""Bytes of a message, however well it can be compressed: games are sent it whole, and many take 1 MiB at most."""
_PIECE: Final = 16 * 1024
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


def is_packed(data: object) -> bool:
    """Whether pages are sent this data compressed, as it is over 4,096 bytes of compact JSON (ruling B2).

    Raises `BadRequest` for what is over 4,096 bytes as base64 of zlib too.
    """
    text = json_codec.encode(data)
    if len(text) <= LARGEST:
        return False
    if len(text) > _LARGEST_PLAIN or not _can_be_packed(text):
        raise BadRequest(
            "Message too large", f"data: {len(text)} bytes, too many when compressed too; at most {LARGEST} are sent"
        )
    return True


def _can_be_packed(text: bytes) -> bool:
    """Whether zlib makes it small enough; looks no further than needed, as a large text would keep all waiting."""
    squeezer, size = zlib.compressobj(9), 0
    for at in range(0, len(text), _PIECE):
        size += len(squeezer.compress(text[at : at + _PIECE]))
        if size > _LARGEST_SQUEEZED:
            return False
    return size + len(squeezer.flush()) <= _LARGEST_SQUEEZED


class Envelope(Struct, omit_defaults=True):
    """What the published SDK makes of a message: the event's full name, and its data."""

    event: str
    data: Any = UNSET


def page_message(event: str, data: object, *, is_packed: bool) -> str:
    """A message as the published SDK decodes it: JSON, or base64 of zlib of it.

    `event` is the full name: environment, client id and the developer's name.
    """
    text = json_codec.encode(Envelope(event, data))
    return (base64.b64encode(zlib.compress(text, 9)) if is_packed else text).decode()


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
