"""What a PIN is, how long it and the tokens behind it live, and what is kept of them (rulings T1, T2, T3). Pure."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from emulator.callers import Caller, Role
from emulator.clock import DAY, MINUTE
from emulator.engines.base import Key
from emulator.errors import BadRequest

PIN_LIFETIME: Final = 5 * MINUTE
ACCESS_LIFETIME: Final = 7 * DAY
REFRESH_LIFETIME: Final = 365 * DAY
LINK_LIFETIME: Final = REFRESH_LIFETIME
"""From the last pair of tokens on: as long as the last refresh token of a link can live."""
TEST_CHANNEL: Final = "sandbox"
"""What an unbound PIN stands for in sandbox, if the extension names no owner (ruling T3)."""


class PinRecord(Struct):
    """A PIN that is alive. The PIN itself is not kept, only its digest, in the key."""

    until: int
    """Its end, in ms."""
    channel_id: str = ""
    """The channel it is bound to; empty while it is bound to none."""
    link: str = ""
    """The link of that channel at the time, which a revocation ends."""
    token_id: str = ""
    """The `jti` of the token that waits for this PIN to be validated."""
    token_until: int = 0


class LinkRecord(Struct):
    """That games may act for a channel. Every token of a link names it; a revocation drops it, and so all of them."""

    link: str
    is_used: bool = False
    """Whether a token was ever handed out for it."""


class PinTokenRecord(Struct):
    """A token of `POST pin` whose PIN has been validated."""

    channel_id: str
    link: str


class AuthenticationEvent(Struct):
    """What subscribers of `authentication` are told (ruling X7); never a token."""

    event: str
    """`authenticated`, `refreshed` or `revoked`."""
    twitch_id: str
    topic_id: str = "authentication"


class Authenticated(Struct):
    """The reply to `authenticate`."""

    jwt: str
    refresh: str | UnsetType = UNSET
    """Absent for a token that is not a broadcaster's."""
    twitch_id: str | UnsetType = UNSET
    twitch_name: str | UnsetType = UNSET
    """The channel's name where it is known; this service knows ids only."""


def checked_client_id(client_id: str, where: str) -> str:
    """A client id as one word, or `BadRequest` naming `where` it stands."""
    if not client_id:
        raise BadRequest("Invalid body", f"{where}: the client id is missing")
    if len(client_id) > 100 or not client_id.isprintable() or " " in client_id or '"' in client_id:
        raise BadRequest(
            "Invalid body", f"{where}: a client id has at most 100 printable characters, no spaces and no quotes"
        )
    return client_id


def pin_key(client_id: str, pin: str, secret: str) -> Key:
    """Where a PIN is kept: under a keyed digest, so that looking it up takes the same time whatever is guessed."""
    digest = hmac.new(secret.encode(), f"{client_id}\n{pin}".encode(), hashlib.sha256)
    return Key("pin", client_id, digest.hexdigest())


def link_key(client_id: str, channel_id: str) -> Key:
    """Where the link of a channel is kept."""
    return Key("link", client_id, "", channel_id)


def pin_token_key(client_id: str, token_id: str) -> Key:
    """Where it is kept that a token's PIN has been validated."""
    return Key("pin_token", client_id, token_id)


def authentication_topic(client_id: str, channel_id: str = "") -> Key:
    """What subscribers of `authentication` follow; without a channel, those who are not authenticated yet."""
    return Key("authentication", client_id, "", channel_id)


def broadcaster_of(client_id: str, channel_id: str) -> Caller:
    """Who a linked game acts as."""
    opaque_id = channel_id if channel_id.startswith("U") else f"U{channel_id}"
    return Caller(client_id, Role.BROADCASTER, channel_id, channel_id, opaque_id)


def wrong_pin() -> BadRequest:
    """The one error for a PIN that is wrong, expired, revoked or another client id's: nothing tells which."""
    return BadRequest("Invalid PIN", "the PIN is wrong or has expired")


def wrong_refresh_token() -> BadRequest:
    """The one error for a refresh token that is expired, revoked, unverifiable or another client id's."""
    return BadRequest("Invalid refresh token", "the refresh token is invalid, has expired or was revoked")
