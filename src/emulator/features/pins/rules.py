"""Lifetimes, stored records and keys of PINs, links and tokens (rulings T1, T2, T3, X7), and refusals. No I/O."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from emulator.contract import limits
from emulator.contract.names import CLIENT_ID_RULE, is_client_id
from emulator.core.callers import Caller, Grant, Role, opaque_id_of
from emulator.core.clock import DAY
from emulator.core.errors import UNAUTHORIZED, BadRequest, Facts, NotFound, TooManyRequests, Unauthorized, refusal
from emulator.core.keys import Key
from emulator.core.wire.refusals import invalid_member, missing_member
from emulator.storage.kinds import Stored, decode_check
from emulator.storage.records import DocumentRecord

_REQUEST_ONE = "Send the `token` of the response to POST pin: `extcli pin request --game` prints it."
_TOO_MANY = (TooManyRequests, "Too many requests", "T4")


@refusal(Unauthorized, UNAUTHORIZED, "T2", "The PIN of the token is not validated yet",
         "Let the broadcaster type the PIN into your extension, or into `extcli pin validate`.")  # fmt: skip
def not_validated() -> Facts:
    held, needed = "a token of POST pin whose PIN is not validated", "a token whose PIN a broadcaster has validated"
    return Facts("token not valid yet: a broadcaster must validate its PIN first", held, needed)


@refusal(BadRequest, "Invalid body", "T5", "The token of POST pin is missing", _REQUEST_ONE)
def no_pin_token() -> Facts:
    needed = "the token of POST pin; a pin is not accepted in its place"
    return Facts(f"jwt: is missing: {needed}", "no jwt", needed)


@refusal(Unauthorized, UNAUTHORIZED, "T5", "The token does not come from POST pin", _REQUEST_ONE)
def not_a_pin_token() -> Facts:
    return Facts("jwt: not a token of POST pin", "another token", "the token of POST pin")


@refusal(BadRequest, "Invalid PIN", "T3", "The PIN is wrong or has expired",
         "Request a new PIN, `extcli pin request`, and type it within five minutes.")  # fmt: skip
def wrong_pin() -> Facts:
    """Refuse a PIN that is wrong, expired, revoked or another client id's. The text does not reveal which."""
    held = "a PIN that is not valid for this client id and channel"
    return Facts("the PIN is wrong or has expired", held, "a PIN of the last five minutes, not revoked")


@refusal(NotFound, "Not Found", "T3", "There is no live PIN with this digest",
         "Request a new PIN: `extcli pin request`.")  # fmt: skip
def no_live_pin(*, digest: str) -> Facts:
    held, needed = f"digest {digest[:64]}", "the digest of a PIN of the last five minutes"
    return Facts("digest: there is no live PIN with this digest", held, needed)


@refusal(BadRequest, "Invalid refresh token", "T3", "The refresh token is not valid",
         "Link the game again: `extcli pin request -o plain | extcli pin login`.")  # fmt: skip
def wrong_refresh_token() -> Facts:
    """Refuse a refresh token that is expired, revoked, unverifiable or issued for another client id."""
    held = "a refresh token that is malformed, over a year old, or revoked"
    return Facts("the refresh token is invalid, has expired or was revoked", held, "a valid one of this client id")


@refusal(*_TOO_MANY, "Too many PINs were requested", "Wait {seconds} s, then request the PIN again.")
def too_many_pins(*, seconds: int) -> Facts:
    what = "PINs requested from this address"
    detail, needed = f"too many {what}; retry in {seconds} s", f"the next one in {seconds} s"
    return Facts(detail, f"{what} above the limit", needed, (), seconds)


@refusal(*_TOO_MANY, "Too many wrong PINs", "Wait {seconds} s, then type the PIN that the extension shows.")
def too_many_wrong_pins(*, what: str, seconds: int) -> Facts:
    detail = f"too many {what}; retry in {seconds} s"
    return Facts(detail, f"{what} above the limit", f"the next attempt in {seconds} s", (), seconds)


@refusal(BadRequest, "Invalid body", "X4", "authenticate needs one credential", "Send one of pin, refresh and jwt.")
def not_one_credential() -> Facts:
    detail = "data: must be an object with exactly one of pin, refresh and jwt"
    return Facts(detail, "none or several of them", "exactly one of pin, refresh and jwt")


PIN: Final = "pin"
"""The kind of the keys of PINs."""
LINKS_ENDED: Final = "links_ended"
"""The kind of the notices that the links of a channel were revoked."""
MIN_DIGEST: Final = 16
"""Characters of a digest that name a PIN."""
PIN_LIFETIME: Final = limits.PIN_LIFETIME
"""An expired PIN is gone: the engine no longer returns its record, so it is refused like a wrong one.

A PIN also ends with the link that it was bound to, or when the control API makes it expire; a use does not end it.
"""
ACCESS_LIFETIME: Final = 7 * DAY
REFRESH_LIFETIME: Final = 365 * DAY
LINK_LIFETIME: Final = REFRESH_LIFETIME
"""A link expires with its newest refresh token."""
TEST_CHANNEL: Final = "sandbox"
"""The channel of an unbound PIN in sandbox, for an extension without `owner_user_id` (ruling T3)."""


class PinRecord(Struct):
    """A live PIN. Only its digest is stored, in the key."""

    until: int = 0
    """When the PIN expires, in Unix ms."""
    channel_id: str = ""
    """The channel that the PIN is bound to; empty for an unbound PIN."""
    link: str = ""
    """The id of the link that the PIN was bound to. A revocation ends that link."""
    cap: int | None = None
    """No token that the PIN gives outlives this, in Unix ms: the `exp` of the issued token that bound the PIN."""
    token_id: str = ""
    """The `jti` of the token that becomes valid with this PIN; empty if there is none."""
    token_until: int = 0
    """When that token expires, in Unix ms."""

    def may_be_bound_to(self, channel_id: str) -> bool:
        """Whether the PIN is not bound to a channel, or is bound to this one."""
        return self.channel_id in ("", channel_id)


class Link(Struct):
    """A link, which permits games to act for a channel.

    Each token names its link, so deleting a link revokes its tokens.
    """

    id: str
    secret: str
    """The fingerprint of the secret that admitted it; retiring that secret ends the link. Empty in the sandbox."""
    at: int
    """When it was made, in Unix ms."""
    until: int
    """When it expires, in Unix ms: with its newest refresh token."""
    is_used: bool = False
    """Whether a token was ever issued for it."""

    @property
    def grant(self) -> Grant:
        return Grant(self.secret, self.id, self.at)


class LinksRecord(Struct):
    """The links of one channel: at most one for each secret that admitted games."""

    links: list[Link] = []


class PinTokenRecord(Struct):
    """A token of `POST pin` whose PIN was validated."""

    channel_id: str
    link: str


class AuthenticationEvent(Struct):
    """The data of an update on `authentication` (ruling X7). Never contains a token."""

    event: str
    """`authenticated`, `refreshed` or `revoked`."""
    twitch_id: str | UnsetType = UNSET
    """The channel. In production, unauthenticated connections do not receive it."""
    topic_id: str = "authentication"


class Authenticated(Struct):
    """The reply to `authenticate`."""

    jwt: str
    refresh: str | UnsetType = UNSET
    """Absent if the caller is not a broadcaster."""
    twitch_id: str | UnsetType = UNSET
    twitch_name: str | UnsetType = UNSET
    """The channel's id, because this service does not know names (ruling X4)."""


def checked_client_id(client_id: str, field: str) -> str:
    """Return the client id; raise `BadRequest` naming `field` if it is missing or malformed."""
    if not client_id:
        raise missing_member(field, "the client id of your extension")
    if not is_client_id(client_id):
        raise invalid_member(field, client_id, CLIENT_ID_RULE)
    return client_id


def pin_key(client_id: str, pin: str, secret: str) -> Key:
    """Return the key of a PIN. It contains a keyed digest, so the time of a lookup reveals nothing about the PIN."""
    digest = hmac.new(secret.encode(), f"{client_id}\n{pin}".encode(), hashlib.sha256)
    return Key(PIN, client_id, digest.hexdigest())


def link_key(client_id: str, channel_id: str) -> Key:
    return Key("link", client_id, "", channel_id)


def pin_token_key(client_id: str, token_id: str) -> Key:
    """Return the key of the record that marks a token's PIN as validated."""
    return Key("pin_token", client_id, token_id)


def authentication_topic(client_id: str, channel_id: str = "") -> Key:
    """Return the topic of a channel's `authentication` updates.

    Without a channel, it is the topic of unauthenticated clients.
    """
    return Key("authentication", client_id, "", channel_id)


def broadcaster_of(client_id: str, channel_id: str, link: Link, expires_at: int | None = None) -> Caller:
    """Return the broadcaster that a linked game acts as."""
    opaque_id, derived = opaque_id_of(channel_id), True
    return Caller(client_id, Role.BROADCASTER, channel_id, channel_id, opaque_id, expires_at, link.grant, derived)


def cap_of(caller: Caller) -> int | None:
    """Return the latest expiry, in Unix ms, of anything made with an issued token. `None` for other tokens."""
    return caller.expires_at if caller.grant.link else None


STORED: Final = (
    Stored(DocumentRecord, PIN, decode_check(PinRecord)),
    Stored(DocumentRecord, "link", decode_check(LinksRecord)),
    Stored(DocumentRecord, "pin_token", decode_check(PinTokenRecord)),
)
