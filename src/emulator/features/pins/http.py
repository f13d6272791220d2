"""PINs over REST: `link/pin`, `pin`, `validate_pin`, `pin_token_exists` (ruling T2)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from emulator.callers import Role
from emulator.features.pins.rules import checked_client_id
from emulator.features.pins.service import Pins
from emulator.web.call import Call
from emulator.web.endpoint import Audience, Nothing, endpoint

_BROADCASTER: Final = frozenset({Role.BROADCASTER})


class ClientBody(Struct):
    """Who asks, where no header says so."""

    identifier: str = ""
    """The client id."""


class PinBody(Struct):
    """A PIN as the broadcaster typed it."""

    pin: str


class Pin(Struct):
    """A PIN, under both names by which published clients look for it."""

    pin: str
    token: str


class PinAndToken(Struct):
    """A PIN, and the token that its validation brings to life."""

    token: str
    pin: str


class Existence(Struct):
    """Whether there is one."""

    exists: bool


@endpoint("POST", "/v1/e/link/pin", audience=Audience.CLIENT_ID, body=ClientBody, answer=Pin)
async def request_pin(pins: Pins, call: Call) -> Pin:
    """Request a PIN that a game is to send over the socket.

    With a broadcaster's token it is bound to their channel; else it needs the client id only, in the Authorization
    header or as `identifier`, and is bound by `validate_pin`.
    """
    pin = await pins.request(_client_id(call), call.caller if call.has_caller else None)
    return Pin(pin, pin)


@endpoint("POST", "/v1/e/pin", audience=Audience.PUBLIC, body=ClientBody, answer=PinAndToken)
async def issue_pin(pins: Pins, call: Call) -> PinAndToken:
    """Request a PIN to be shown to a broadcaster, with a token that is dead until `validate_pin`.

    The token is valid as soon as `user_info` answers it with 200.
    """
    token, pin = await pins.issue(_client_id(call))
    return PinAndToken(token, pin)


@endpoint("POST", "/v1/e/validate_pin", roles=_BROADCASTER, body=PinBody)
async def validate_pin(pins: Pins, call: Call) -> Nothing:
    """Bind a PIN, and the token that waits for it, to the broadcaster's channel."""
    await pins.validate(call.caller, call.body(PinBody).pin)
    return Nothing()


@endpoint("GET", "/v1/e/pin_token_exists", roles=_BROADCASTER, answer=Existence)
async def pin_token_exists(pins: Pins, call: Call) -> Existence:
    """Read whether a game holds a token for the channel."""
    return Existence(await pins.exists(call.caller))


@endpoint("DELETE", "/v1/e/pin", roles=_BROADCASTER)
async def revoke_pins(pins: Pins, call: Call) -> Nothing:
    """End all PINs, PIN tokens and refresh tokens of the channel."""
    await pins.revoke(call.caller)
    return Nothing()


def _client_id(call: Call) -> str:
    """The client id of the header, else that of the body."""
    if call.client_id:
        return call.client_id
    client_id = checked_client_id(call.body(ClientBody).identifier if call.raw.strip() else "", "identifier")
    call.check_registered(client_id)
    return client_id


endpoints: Final = (request_pin, issue_pin, validate_pin, pin_token_exists, revoke_pins)
