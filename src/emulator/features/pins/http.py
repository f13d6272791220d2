"""PINs over REST: `link/pin`, `pin`, `validate_pin`, `pin_token_exists` (ruling T2), and control of live PINs."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from emulator.callers import CHANNEL_WRITERS, Role
from emulator.features.pins.refusals import no_pin_token
from emulator.features.pins.rules import checked_client_id
from emulator.features.pins.service import Pins
from emulator.http.endpoint import CHANNEL, Audience, Call, Nothing, endpoint
from emulator.wire.refusals import wrong_shape

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
