"""PINs and tokens over the socket: `authenticate`, and updates on `authentication` (rulings X3, X4, X7)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from emulator.engines.shapes import Key
from emulator.features.pins.refusals import not_one_credential
from emulator.features.pins.rules import Authenticated, authentication_topic, checked_client_id
from emulator.features.pins.service import Pins
from emulator.parity.service import current_verdict
from emulator.realtime.action import Message, action, feed
from emulator.realtime.session import Session


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
