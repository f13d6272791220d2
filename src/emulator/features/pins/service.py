"""Creates, validates and revokes PINs, and exchanges them for the tokens of linked games."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import UNSET

from emulator.auth.signing_key import SigningKey
from emulator.auth.tokens import PIN_USE, REFRESH_USE, UNAUTHORIZED, Tokens
from emulator.callers import Caller, Role
from emulator.clock import Clock
from emulator.config.extensions import Extensions
from emulator.config.settings import Settings
from emulator.engines.base import Documents, Key
from emulator.errors import BadRequest, EngineError, Unauthorized
from emulator.features.pins.attempt_limit import AttemptLimit
from emulator.features.pins.rules import (
    ACCESS_LIFETIME,
    LINK_LIFETIME,
    PIN_LIFETIME,
    REFRESH_LIFETIME,
    TEST_CHANNEL,
    Authenticated,
    AuthenticationEvent,
    LinkRecord,
    PinRecord,
    PinTokenRecord,
    authentication_topic,
    broadcaster_of,
    link_key,
    pin_key,
    pin_token_key,
    wrong_pin,
    wrong_refresh_token,
)
from emulator.ids import pin as new_pin
from emulator.ids import token_id as new_id
from emulator.realtime.publisher import Publisher
from emulator.wire import json_codec

T = TypeVar("T")
_MAX_PIN_TRIES = 20


class AuthResult(NamedTuple):
    """A successful `authenticate`."""

    caller: Caller
    """The connection's new caller."""
    reply: Authenticated
    event: str
    """The event for subscribers of `authentication`."""


@dataclass(eq=False, repr=False)
class Pins:
    """PINs, links and tokens. `_authenticate` verifies an `Authorization` header, as for any REST call."""

    _documents: Documents
    _clock: Clock
    _tokens: Tokens
    _settings: Settings
    _extensions: Extensions
    _publisher: Publisher
    _service_key: SigningKey
    _authenticate: Callable[[str], Awaitable[Caller]]

    def __post_init__(self) -> None:
        self.attempt_limit = AttemptLimit(self._clock, self._settings.anonymous)

    async def request(self, client_id: str, channel_id: str, address: str | None) -> str:
        """Create a PIN that is bound to a channel; an unbound one if `channel_id` is empty.

        Raises `TooManyRequests` if `address`, which is `None` for a caller with rights, has requested too many.
        """
        if address is not None:
            self.attempt_limit.count_request(address)
        link = await self._link(client_id, channel_id) if channel_id else ""
        return await self._create_pin(client_id, PinRecord(channel_id=channel_id, link=link))

    async def issue(self, client_id: str, address: str) -> tuple[str, str]:
        """Create a broadcaster's token that is invalid until its PIN is validated; return the token and the PIN.

        Raises `TooManyRequests` if the address has requested too many.
        """
        self.attempt_limit.count_request(address)
        token_id, until = new_id(), self._clock.now() + ACCESS_LIFETIME
        token = self._tokens.issue(
            ACCESS_LIFETIME, use=PIN_USE, role=Role.BROADCASTER, extension_id=client_id, jti=token_id
        )
        return token, await self._create_pin(client_id, PinRecord(token_id=token_id, token_until=until))

    async def validate(self, caller: Caller, pin: str) -> None:
        """Bind a PIN and its token to the broadcaster's channel. Raises `BadRequest` and `TooManyRequests`."""
        channel_id = caller.channel_id
        if not channel_id:
            raise BadRequest("Invalid channel", "the token needs a channel_id: the channel to link")
        with self.attempt_limit.attempt_of_channel(caller.client_id, channel_id):
            await self._validate(caller, channel_id, pin)

    async def _validate(self, caller: Caller, channel_id: str, pin: str) -> None:
        key = pin_key(caller.client_id, pin, self._service_key.value)
        record = await self._read(key, PinRecord)
        if (
            record is None
            or record.channel_id not in ("", channel_id)
            or (record.link and not await self._is_current(caller.client_id, record.channel_id, record.link))
        ):
            raise wrong_pin()
        link = await self._link(caller.client_id, channel_id, use=bool(record.token_id))

        def bind(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            bound = _decode(found.get(key), PinRecord)
            # Another broadcaster may have bound it since.
            if bound is None or bound.channel_id not in ("", channel_id):
                raise wrong_pin()
            bound.channel_id, bound.link = channel_id, link
            return {key: json_codec.encode(bound)}

        await self._documents.update([key], bind, now=self._clock.now(), expires_at=record.until)
        if record.token_id:
            token_key = pin_token_key(caller.client_id, record.token_id)
            token_record = json_codec.encode(PinTokenRecord(channel_id, link))
            await self._documents.update(
                [token_key], lambda _: {token_key: token_record}, now=self._clock.now(), expires_at=record.token_until
            )
        await self._publish(caller.client_id, channel_id, "authenticated", also_unauthenticated=True)

    async def linked_caller(self, caller: Caller, token_id: str) -> Caller:
        """Return the caller behind a token of `POST pin`. Raises `Unauthorized` until its PIN is validated."""
        record = await self._read(pin_token_key(caller.client_id, token_id), PinTokenRecord)
        if record is None:
            raise Unauthorized(UNAUTHORIZED, "token not valid yet: a broadcaster must validate its PIN first")
        if not await self._is_current(caller.client_id, record.channel_id, record.link):
            raise Unauthorized(UNAUTHORIZED, "the broadcaster revoked the token")
        return broadcaster_of(caller.client_id, record.channel_id)

    async def exists(self, caller: Caller) -> bool:
        """Return whether the channel has a token that was not revoked."""
        link = await self._read(link_key(caller.client_id, caller.channel_id or ""), LinkRecord)
        return link is not None and link.is_used

    async def revoke(self, caller: Caller) -> None:
        """Revoke all PINs, PIN tokens and refresh tokens of the channel. Access tokens stay valid until they expire."""
        channel_id = caller.channel_id or ""
        await self._documents.drop([link_key(caller.client_id, channel_id)], now=self._clock.now())
        await self._publish(caller.client_id, channel_id, "revoked")

    async def authenticate_by_pin(self, client_id: str, pin: str, address: str) -> AuthResult:
        """Exchange a PIN for an access and a refresh token. Raises `BadRequest` and `TooManyRequests`."""
        with self.attempt_limit.attempt(client_id, address):
            record = await self._read(pin_key(client_id, pin, self._service_key.value), PinRecord)
            if record is None or (not record.channel_id and self._settings.environment.verifies_tokens):
                raise wrong_pin()
        channel_id, link = record.channel_id, record.link
        if channel_id:
            await self._renew_link(client_id, channel_id, link, wrong_pin())
        else:
            extension = self._extensions.find(client_id)
            channel_id = (extension and extension.owner_user_id) or TEST_CHANNEL
            link = await self._link(client_id, channel_id, use=True)
        return self._auth_result(client_id, channel_id, link, "authenticated")

    async def authenticate_by_refresh_token(self, client_id: str, token: str) -> AuthResult:
        """Exchange a refresh token for new tokens; the old one stays usable until it expires. Raises `BadRequest`."""
        claims = self._tokens.own_claims(token, use=REFRESH_USE)
        if claims is None or claims.get("extension_id") != client_id:
            raise wrong_refresh_token()
        channel_id, link = str(claims.get("channel_id")), str(claims.get("link"))
        await self._renew_link(client_id, channel_id, link, wrong_refresh_token())
        return self._auth_result(client_id, channel_id, link, "refreshed")

    async def authenticate_by_jwt(self, client_id: str, token: str) -> AuthResult:
        """Accept an access token, and issue new tokens if it is a broadcaster's. Raises `Unauthorized`."""
        caller = await self._authenticate(f"{client_id} {token}")
        channel_id = caller.channel_id
        if caller.role is Role.BROADCASTER and channel_id:
            link = await self._link(client_id, channel_id)
            return self._auth_result(client_id, channel_id, link, "authenticated")
        reply = Authenticated(token)
        if channel_id:
            reply.twitch_id = reply.twitch_name = channel_id
        return AuthResult(caller, reply, "authenticated")

    async def publish_authentication(self, result: AuthResult) -> None:
        """Publish the event, once the connection itself has subscribed to its channel."""
        if result.caller.channel_id:
            await self._publish(result.caller.client_id, result.caller.channel_id, result.event)

    async def _create_pin(self, client_id: str, record: PinRecord) -> str:
        """Store a new PIN that differs from the client id's other live PINs, and return it."""
        for _ in range(_MAX_PIN_TRIES):
            now, pin = self._clock.now(), new_pin()
            key = pin_key(client_id, pin, self._service_key.value)
            record.until = now + PIN_LIFETIME
            text = json_codec.encode(record)

            def create(found: Mapping[Key, bytes], key: Key = key, text: bytes = text) -> Mapping[Key, bytes]:
                return {} if found else {key: text}

            if await self._documents.update([key], create, now=now, expires_at=record.until):
                return pin
        raise EngineError(f"no free PIN in {_MAX_PIN_TRIES} tries")

    async def _link(self, client_id: str, channel_id: str, *, use: bool = False) -> str:
        """Return the id of the channel's link; create the link if there is none."""
        key, new_link = link_key(client_id, channel_id), new_id()

        def ensure(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            link = _decode(found.get(key), LinkRecord) or LinkRecord(new_link)
            link.is_used = link.is_used or use
            return {key: json_codec.encode(link)}

        now = self._clock.now()
        written = await self._documents.update([key], ensure, now=now, expires_at=now + LINK_LIFETIME)
        return msgspec.json.decode(written[key], type=LinkRecord).link

    async def _renew_link(self, client_id: str, channel_id: str, link: str, error: BadRequest) -> None:
        """Restart the lifetime of a link, because new tokens are issued; raise `error` if it was revoked."""
        key = link_key(client_id, channel_id)

        def renew(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            current = _decode(found.get(key), LinkRecord)
            if current is None or current.link != link:
                raise error
            current.is_used = True
            return {key: json_codec.encode(current)}

        now = self._clock.now()
        await self._documents.update([key], renew, now=now, expires_at=now + LINK_LIFETIME)

    async def _is_current(self, client_id: str, channel_id: str, link: str) -> bool:
        current = await self._read(link_key(client_id, channel_id), LinkRecord)
        return current is not None and current.link == link

    def _auth_result(self, client_id: str, channel_id: str, link: str, event: str) -> AuthResult:
        caller = broadcaster_of(client_id, channel_id)
        access = self._tokens.issue(
            ACCESS_LIFETIME,
            role=caller.role,
            channel_id=channel_id,
            user_id=caller.user_id,
            opaque_user_id=caller.opaque_id,
            extension_id=client_id,
        )
        refresh = self._tokens.issue(
            REFRESH_LIFETIME, use=REFRESH_USE, extension_id=client_id, channel_id=channel_id, link=link
        )
        return AuthResult(caller, Authenticated(access, refresh, channel_id, channel_id), event)

    async def _publish(
        self, client_id: str, channel_id: str, event: str, *, also_unauthenticated: bool = False
    ) -> None:
        """Publish an event to the channel, and on request to the client id's unauthenticated connections."""
        data = AuthenticationEvent(event, channel_id)
        await self._publisher.try_publish(authentication_topic(client_id, channel_id), "authentication", data)
        if also_unauthenticated:
            if self._settings.environment.verifies_tokens:
                data.twitch_id = UNSET
            await self._publisher.try_publish(authentication_topic(client_id), "authentication", data)

    async def _read(self, key: Key, shape: type[T]) -> T | None:
        return _decode((await self._documents.read([key], now=self._clock.now())).get(key), shape)


def _decode(text: bytes | None, shape: type[T]) -> T | None:
    return None if text is None else msgspec.json.decode(text, type=shape)
