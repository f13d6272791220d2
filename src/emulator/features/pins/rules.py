"""Lifetimes of tokens, what clients are told of logins (rulings T2, T3, X7), and refusals. No I/O."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from emulator.contract.names import CLIENT_ID_RULE, is_client_id
from emulator.core.clock import DAY
from emulator.core.errors import UNAUTHORIZED, BadRequest, Facts, NotFound, Unauthorized, refusal
from emulator.core.keys import Key
from emulator.core.wire.refusals import invalid_member, missing_member

_REQUEST_PIN_TOKEN = "Send the `token` of the response to POST pin: `extcli pin request --game` prints it."


@refusal(Unauthorized, UNAUTHORIZED, "T2", "The PIN of the token is not validated yet",
         "Let the broadcaster type the PIN into your extension, or into `extcli pin validate`.")  # fmt: skip
def not_validated() -> Facts:
    held, needed = "a token of POST pin whose PIN is not validated", "a token whose PIN a broadcaster has validated"
    return Facts("token not valid yet: a broadcaster must validate its PIN first", held, needed)


@refusal(BadRequest, "Invalid body", "T5", "The token of POST pin is missing", _REQUEST_PIN_TOKEN)
def no_pin_token() -> Facts:
    detail = "jwt: is missing; send the token of POST pin, not a PIN"
    return Facts(detail, "no jwt", "the token of POST pin; a PIN is not accepted in its place")


@refusal(Unauthorized, UNAUTHORIZED, "T5", "The token does not come from POST pin", _REQUEST_PIN_TOKEN)
def not_a_pin_token() -> Facts:
    return Facts("jwt: must be the token of POST pin", "another token", "the token of POST pin")


@refusal(NotFound, "Not Found", "T3", "No valid PIN has this digest",
         "Request a new PIN: `extcli pin request`.")  # fmt: skip
def no_live_pin(*, digest: str) -> Facts:
    held, needed = f"digest {digest[:64]}", "the digest of a PIN of the last five minutes"
    return Facts("digest: no valid PIN has this digest", held, needed)


@refusal(BadRequest, "Invalid refresh token", "T3", "The refresh token is not valid",
         "Link the game again: `extcli pin request -o plain | extcli pin login`.")  # fmt: skip
def wrong_refresh_token() -> Facts:
    """Refuse a refresh token that is expired, revoked, unverifiable or issued for another client id."""
    held = "a refresh token that is malformed, over a year old, or revoked"
    needed = "a valid refresh token of this client id"
    return Facts("the refresh token is invalid, has expired or was revoked", held, needed)


@refusal(BadRequest, "Invalid body", "X4", "authenticate needs one credential", "Send one of pin, refresh and jwt.")
def not_one_credential() -> Facts:
    detail = "data: must be an object with exactly one of pin, refresh and jwt"
    return Facts(detail, "none or several", "exactly one of pin, refresh and jwt")


LINKS_ENDED = "links_ended"
"""The kind of the notices that the links of a channel were revoked."""
ACCESS_LIFETIME = 7 * DAY
REFRESH_LIFETIME = 365 * DAY
TEST_CHANNEL = "sandbox"
"""The channel of an unbound PIN in sandbox, for an extension without `owner_user_id` (ruling T3)."""


class ClientBody(Struct):
    """The body of a request for a PIN: the client id, if no header names it."""

    identifier: str = ""
    """The client id."""


class PinBody(Struct):
    """A PIN as the broadcaster typed it."""

    pin: str


class TokenBody(ClientBody):
    """A token of `POST pin`."""

    jwt: str = ""


class Pin(Struct):
    """A PIN, under both names that published clients read."""

    pin: str
    token: str


class PinAndToken(Struct):
    """A PIN, and the token that becomes valid with it."""

    token: str
    pin: str


class Existence(Struct):
    """Whether a token exists."""

    exists: bool


class Expiry(Struct):
    """The body that makes a PIN expire: the PIN, or its digest."""

    client_id: str
    pin: str = ""
    digest: str = ""
    """The digest under which the service keeps the PIN, or its first 16 characters, as `GET /_emulator/contents/pins`
    lists them."""


class Credentials(Struct):
    """A client id, and one of `pin`, `refresh` and `jwt`."""

    client_id: str = ""
    pin: str | None = None
    refresh: str | None = None
    jwt: str | None = None


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


def authentication_topic(client_id: str, channel_id: str = "") -> Key:
    """Return the topic of a channel's `authentication` updates.

    Without a channel, it is the topic of unauthenticated clients.
    """
    return Key("authentication", client_id, "", channel_id)
