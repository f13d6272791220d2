"""PINs and tokens over the socket: `authenticate`, and the feed `authentication` (rulings X3, X4, X7)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from emulator.engines.base import Key
from emulator.errors import BadRequest
from emulator.features.pins.rules import Authenticated, authentication_topic, checked_client_id
from emulator.features.pins.service import Pins
from emulator.realtime.action import Message, action, feed
from emulator.realtime.session import Session


class Credentials(Struct):
    """Exactly one of the three, and whose it is."""

    client_id: str = ""
    pin: str | None = None
    refresh: str | None = None
    jwt: str | None = None


@action("authenticate", is_open=True)
async def authenticate(pins: Pins, message: Message) -> Authenticated:
    """Take the rights that a PIN, a refresh token or an access token gives; a failure leaves rights as they were."""
    session, given = message.session, message.body(Credentials)
    client_id = checked_client_id(given.client_id or session.client_id, "data.client_id")
    if [given.pin, given.refresh, given.jwt].count(None) != 2:
        raise BadRequest("Invalid body", "data: exactly one of pin, refresh and jwt is needed")
    topic = _topic(session)
    if given.pin is not None:
        admission = await pins.authenticate_by_pin(client_id, given.pin)
    elif given.refresh is not None:
        admission = await pins.authenticate_by_refresh_token(client_id, given.refresh)
    else:
        admission = await pins.authenticate_by_jwt(client_id, given.jwt or "")
    followed = session.is_subscribed(topic)
    session.set_caller(admission.caller)
    session.unsubscribe(topic)
    if followed:
        session.subscribe(_topic(session))
    await pins.announce(admission)
    return admission.answer


@feed("authentication", is_open=True)
async def authentication_feed(pins: Pins, message: Message) -> tuple[Key, ...]:
    """Authentications and revocations of the connection's client id and channel."""
    return (_topic(message.session),)


def _topic(session: Session) -> Key:
    caller = session.caller
    if caller is None:
        return authentication_topic(session.client_id)
    return authentication_topic(caller.client_id, caller.channel_id or "")


actions: Final = (authenticate,)
feeds: Final = (authentication_feed,)
