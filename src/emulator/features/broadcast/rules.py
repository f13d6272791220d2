"""Limits, targets and encoding of broadcasts (rulings B2, B3, X8). No I/O."""

from __future__ import annotations

import base64
import zlib
from typing import Any, Final

from msgspec import UNSET, Struct

from emulator.callers import Caller
from emulator.contract.limits import MAX_JSON_BYTES, MAX_MESSAGE_BYTES, MAX_USER_LENGTH
from emulator.engines.shapes import Key
from emulator.features.broadcast.refusals import (
    message_too_large,
    message_too_large_before_compression,
    no_target,
    too_many_recipients,
)
from emulator.wire import json_codec
from emulator.wire.refusals import checked_text

BEST, FAST = 9, 6
"""Levels of compression. 64 KiB may take 0.2 s at the best level, and a twentieth of that at the fast one."""
MAX_WHISPERS: Final = 1_000
"""Users in one request to whisper to."""
MAX_EVENT_LENGTH: Final = 256
BROADCAST: Final = "broadcast"
"""The target for all subscribers."""
WHISPER_PREFIX: Final = "whisper-"


class Event(Struct):
    """The data of an update for subscribers of an event."""

    event: str
    data: Any
    channel_id: str
    """Empty for an event of the whole extension."""
    scope: str
    """`channel`, `extension` or `whisper`."""


def checked_event(event: str, name: str = "event") -> str:
    """Return the event's name, the member `name`; raise `BadRequest` unless it has 1 to 256 printable characters."""
    return checked_text(event, MAX_EVENT_LENGTH, reason="Invalid event", name=name)


def targets_of(user_ids: list[str]) -> list[str]:
    """Return a target for each user, without duplicates. Raises `BadRequest` for over 1,000."""
    if len(user_ids) > MAX_WHISPERS:
        raise too_many_recipients(count=len(user_ids), limit=MAX_WHISPERS)
    return [f"{WHISPER_PREFIX}{user_id}" for user_id in dict.fromkeys(user_ids)]


def user_of_target(target: str) -> str:
    """Return the user of a whisper, or an empty string for `broadcast`. Raises `BadRequest` for any other target."""
    if target == BROADCAST:
        return ""
    user_id = target.removeprefix(WHISPER_PREFIX)
    if user_id == target or not user_id or len(user_id) > MAX_USER_LENGTH or not user_id.isprintable():
        raise no_target(target=target[:40], all=BROADCAST, whisper=WHISPER_PREFIX)
    return user_id


def needs_compression(text: bytes, level: int = BEST) -> bool:
    """Whether pages receive this compact JSON compressed: over 4,096 bytes (ruling B2). Raises `BadRequest`."""
    if len(text) <= MAX_MESSAGE_BYTES:
        return False
    compressed = len(_compressed(text, level))
    if len(text) > MAX_JSON_BYTES:
        raise message_too_large_before_compression(size=len(text), compressed=compressed, limit=MAX_JSON_BYTES)
    if compressed > MAX_MESSAGE_BYTES:
        raise message_too_large(size=len(text), compressed=compressed, limit=MAX_MESSAGE_BYTES)
    return True


def _compressed(text: bytes, level: int) -> bytes:
    return base64.b64encode(zlib.compress(text, level))


class Envelope(Struct, omit_defaults=True):
    """A message as the published SDK wraps it; `event` is the full name."""

    event: str
    data: Any = UNSET


def encode_for_page(event: str, data: object, compress: bool, level: int = BEST) -> str:
    """Encode a message as the published SDK decodes it: JSON, or base64 of zlib. `event` is the full name."""
    text = json_codec.encode(Envelope(event, data))
    return (_compressed(text, level) if compress else text).decode()


def full_name(environment: str, client_id: str, event: str) -> str:
    """Return the name of an event as pages know it."""
    return f"{environment}:{client_id}:{event}"


def strip_prefix(event: str, environment: str, client_id: str) -> str:
    """Return the developer's name of an event, without environment and client id."""
    return event.removeprefix(full_name(environment, client_id, ""))


def subscribed_topics(caller: Caller, channel: str, event: str) -> tuple[Key, ...]:
    """Return the topics of a subscriber: the event in the channel, in the extension, and whispered to the caller."""
    return (
        Key("event", caller.client_id, event, channel),
        Key("event", caller.client_id, event),
        *(Key("event", caller.client_id, event, where, user) for user in sorted(caller.ids) for where in (channel, "")),
    )
