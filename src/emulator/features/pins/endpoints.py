"""PINs over REST: `link/pin`, `pin`, `validate_pin`, `pin_token_exists` (ruling T2), and control of live PINs; and over
the socket: `authenticate`, and updates on `authentication` (rulings X3, X4, X7).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from emulator.core.callers import CHANNEL_WRITERS, Role
from emulator.core.keys import Key
from emulator.core.parity import current_verdict
from emulator.core.wire.refusals import wrong_shape
from emulator.features.pins.rules import (
    Authenticated,
    authentication_topic,
    checked_client_id,
    no_pin_token,
    not_one_credential,
)
from emulator.features.pins.service import Pins
from emulator.http.endpoint import CHANNEL, Audience, Call, Nothing, endpoint
from emulator.realtime.action import Message, action, feed
from emulator.realtime.session import Session

_BROADCASTER: Final = frozenset({Role.BROADCASTER})
_SECRETS: Final = frozenset({"pin", "token", "jwt"})


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


class Expiry(Struct):
    """The body that makes a PIN expire: the PIN, or its digest."""

    client_id: str
    pin: str = ""
    digest: str = ""
    """The digest under which the service keeps the PIN, or its first 16 characters, as `GET /_emulator/contents/pins`
    lists them."""


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


@endpoint(
    "POST",
    "/v1/e/link/pin",
    audience=Audience.CLIENT_ID,
    body=ClientBody,
    answer=Pin,
    query=(CHANNEL,),
    secrets=_SECRETS,
)
async def request_pin(pins: Pins, call: Call) -> Pin:
    """Request a PIN for a game to send over the socket.

    With a broadcaster's token, or an admin or backend token and a channel, the PIN is bound to that channel. Otherwise
    only the client id is needed, in the Authorization header or as `identifier`; `validate_pin` binds the PIN later.
    """
    may_bind = call.has_caller and call.caller.role in CHANNEL_WRITERS
    if may_bind and call.channel:
        pin = await pins.request_bound(call.caller, call.channel)
    else:
        pin = await pins.request(_client_id(call), None if may_bind else call.peer)
    return Pin(pin, pin)


@endpoint("POST", "/v1/e/pin", audience=Audience.PUBLIC, body=ClientBody, answer=PinAndToken, secrets=_SECRETS)
async def issue_pin(pins: Pins, call: Call) -> PinAndToken:
    """Request a PIN to show to a broadcaster, and a token that is invalid until `validate_pin`.

    The token is valid once `user_info` returns 200 for it.
    """
    token, pin = await pins.issue(_client_id(call), call.peer)
    return PinAndToken(token, pin)


@endpoint("POST", "/v1/e/validate_pin", roles=_BROADCASTER, body=PinBody, secrets=_SECRETS)
async def validate_pin(pins: Pins, call: Call) -> Nothing:
    """Bind a PIN and its token to the broadcaster's channel."""
    await pins.validate(call.caller, call.body(PinBody).pin)
    return Nothing()


@endpoint("POST", "/v1/e/unauthed/validate_pin", audience=Audience.PUBLIC, body=TokenBody, secrets=_SECRETS)
async def check_pin_token(pins: Pins, call: Call) -> Nothing:
    """Return 200 once the PIN behind a token of `POST pin` was validated, and 401 before.

    A `pin` in place of the token is refused: the response would reveal whether a PIN is right.
    """
    client_id, token = _client_id(call), call.body(TokenBody).jwt
    if not token:
        raise no_pin_token()
    await pins.check_validated(client_id, token)
    return Nothing()


@endpoint("GET", "/v1/e/pin_token_exists", roles=_BROADCASTER, answer=Existence)
async def pin_token_exists(pins: Pins, call: Call) -> Existence:
    """Return whether a game has a token for the channel."""
    return Existence(await pins.exists(call.caller))


@endpoint("DELETE", "/v1/e/pin", roles=_BROADCASTER)
async def revoke_pins(pins: Pins, call: Call) -> Nothing:
    """Revoke all PINs, PIN tokens and refresh tokens of the channel."""
    await pins.revoke(call.caller)
    return Nothing()


@endpoint("POST", "/_emulator/pins/expire", audience=Audience.CONTROL, body=Expiry, secrets=frozenset({"pin"}))
async def expire_pin(pins: Pins, call: Call) -> Nothing:
    """Make one PIN expire now, without moving the clock. Links made with the PIN stay."""
    body = call.body(Expiry)
    if bool(body.pin) == bool(body.digest):
        raise wrong_shape("pin, digest", needed="one of the two")
    await pins.expire(body.client_id, pin=body.pin, digest=body.digest)
    return Nothing()


def _client_id(call: Call) -> str:
    """Return the client id in the Authorization header, or by default in the body."""
    if call.client_id:
        return call.client_id
    client_id = checked_client_id(call.body(ClientBody).identifier if call.raw.strip() else "", "identifier")
    call.check_registered(client_id)
    return client_id


endpoints: Final = (request_pin, issue_pin, validate_pin, check_pin_token, pin_token_exists, revoke_pins)
control: Final = (expire_pin,)


class Credentials(Struct):
    """A client id, and one of `pin`, `refresh` and `jwt`."""

    client_id: str = ""
    pin: str | None = None
    refresh: str | None = None
    jwt: str | None = None


@action("authenticate", is_open=True, secrets=frozenset({"pin", "refresh", "jwt"}))
async def authenticate(pins: Pins, message: Message) -> Authenticated:
    """Give the connection the rights of a PIN, a refresh token or an access token. A failure changes nothing."""
    session, body = message.session, message.body(Credentials)
    client_id = checked_client_id(body.client_id or session.client_id, "data.client_id")
    if [body.pin, body.refresh, body.jwt].count(None) != 2:
        raise not_one_credential()
    topic = _topic(session)
    if body.pin is not None:
        result = await pins.authenticate_by_pin(client_id, body.pin, session.connection.address)
    elif body.refresh is not None:
        result = await pins.authenticate_by_refresh_token(client_id, body.refresh)
    else:
        result = await pins.authenticate_by_jwt(client_id, body.jwt or "")
    pins.check_admitted(result.caller)
    was_subscribed = session.is_subscribed(topic)
    # Without these rights, production refuses all other actions.
    session.set_caller(replace(result.caller, production=current_verdict()))
    session.unsubscribe(topic)
    if was_subscribed:
        session.subscribe(_topic(session))
    await pins.publish_authentication(result)
    return result.reply


@feed("authentication", is_open=True)
async def authentication_feed(pins: Pins, message: Message) -> tuple[Key, ...]:
    """Follow authentications and revocations of the connection's client id and channel."""
    return (_topic(message.session),)


def _topic(session: Session) -> Key:
    caller = session.caller
    if caller is None:
        return authentication_topic(session.client_id)
    return authentication_topic(caller.client_id, caller.channel_id or "")


actions: Final = (authenticate,)
feeds: Final = (authentication_feed,)
