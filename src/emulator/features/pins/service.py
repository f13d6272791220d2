"""Everything the service promises about PINs, links and the tokens of linked games."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeVar

import msgspec

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
_TRIES = 20


class Admission(NamedTuple):
    """A success of `authenticate`: who the connection now is, and what it is answered."""

    caller: Caller
    answer: Authenticated
    event: str
    """What subscribers of `authentication` are told."""


class Pins:
    """PINs from their request to the tokens that they lead to. `caller` checks a credential, as for any other call."""

    def __init__(
        self,
        documents: Documents,
        clock: Clock,
        tokens: Tokens,
        settings: Settings,
        extensions: Extensions,
        publisher: Publisher,
        service_key: SigningKey,
        caller: Callable[[str], Awaitable[Caller]],
    ) -> None:
        self._documents = documents
        self._clock = clock
        self._tokens = tokens
        self._settings = settings
        self._extensions = extensions
        self._publisher = publisher
        self._service_key = service_key
        self._caller = caller
        self.attempt_limit = AttemptLimit(
            clock, settings.limits.pin_attempts if settings.environment.limits_pin_attempts else None
        )

    async def request(self, client_id: str, caller: Caller | None) -> str:
        """A PIN; bound to the caller's channel if a broadcaster asks, else to none until it is validated."""
        if caller is not None and caller.role is Role.BROADCASTER and caller.channel_id:
            link = await self._link(client_id, caller.channel_id)
            return await self._new(client_id, channel_id=caller.channel_id, link=link)
        return await self._new(client_id)

    async def issue(self, client_id: str) -> tuple[str, str]:
        """A broadcaster's token that is dead until its PIN is validated, and that PIN."""
        token_id, until = new_id(), self._clock.now() + ACCESS_LIFETIME
        token = self._tokens.issue(
            ACCESS_LIFETIME, use=PIN_USE, role=Role.BROADCASTER, extension_id=client_id, jti=token_id
        )
        return token, await self._new(client_id, token_id=token_id, token_until=until)

    async def validate(self, caller: Caller, pin: str) -> None:
        """Bind a PIN, and the token that waits for it, to the broadcaster's channel.

        Raises `BadRequest` for a PIN that is wrong, expired or bound to another channel.
        """
        channel_id = caller.channel_id
        if not channel_id:
            raise BadRequest("Invalid channel", "the token names no channel to link: channel_id is missing")
        self.attempt_limit.check(caller.client_id)
        key = pin_key(caller.client_id, pin, self._service_key.value)
        record = await self._read(key, PinRecord)
        if record is None or record.channel_id not in ("", channel_id) or not await self._is_good(caller, record):
            self._failed(caller.client_id)
            raise wrong_pin()
        link = await self._link(caller.client_id, channel_id, use=bool(record.token_id))

        def bind(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            bound = _record(found.get(key), PinRecord)
            if bound is None or bound.channel_id not in ("", channel_id):  # another broadcaster was faster
                raise wrong_pin()
            bound.channel_id, bound.link = channel_id, link
            return {key: json_codec.encode(bound)}

        await self._documents.update([key], bind, now=self._clock.now(), expires_at=record.until)
        if record.token_id:
            token, value = pin_token_key(caller.client_id, record.token_id), PinTokenRecord(channel_id, link)
            await self._documents.update(
                [token],
                lambda _: {token: json_codec.encode(value)},
                now=self._clock.now(),
                expires_at=record.token_until,
            )
        await self._tell(caller.client_id, channel_id, "authenticated", waiting=True)

    async def linked(self, caller: Caller, token_id: str) -> Caller:
        """Who a token of `POST pin` acts as; raises `Unauthorized` before its PIN is validated, and once revoked."""
        record = await self._read(pin_token_key(caller.client_id, token_id), PinTokenRecord)
        if record is None:
            raise Unauthorized(UNAUTHORIZED, "token not valid yet: a broadcaster has to validate its PIN first")
        if not await self._is_alive(caller.client_id, record.channel_id, record.link):
            raise Unauthorized(UNAUTHORIZED, "token revoked by the broadcaster")
        return broadcaster_of(caller.client_id, record.channel_id)

    async def exists(self, caller: Caller) -> bool:
        """Whether a token was handed out for the channel, and not revoked since."""
        link = await self._read(link_key(caller.client_id, caller.channel_id or ""), LinkRecord)
        return link is not None and link.is_used

    async def revoke(self, caller: Caller) -> None:
        """End all PINs, PIN tokens and refresh tokens of the channel. Access tokens live on to their end."""
        channel_id = caller.channel_id or ""
        await self._documents.drop([link_key(caller.client_id, channel_id)], now=self._clock.now())
        await self._tell(caller.client_id, channel_id, "revoked")

    async def authenticate_by_pin(self, client_id: str, pin: str) -> Admission:
        """Exchange a PIN for a pair of tokens; it stays usable until it expires. Raises `BadRequest`."""
        self.attempt_limit.check(client_id)
        record = await self._read(pin_key(client_id, pin, self._service_key.value), PinRecord)
        if record is None:
            self._failed(client_id)
            raise wrong_pin()
        channel_id = record.channel_id
        if channel_id:
            await self._extend(client_id, channel_id, record.link, wrong_pin())
            link = record.link
        elif self._settings.environment.verifies_tokens:
            self._failed(client_id)
            raise wrong_pin()
        else:
            extension = self._extensions.find(client_id)
            channel_id = (extension and extension.owner_user_id) or TEST_CHANNEL
            link = await self._link(client_id, channel_id, use=True)
        return self._admitted(client_id, channel_id, link, "authenticated")

    async def authenticate_by_refresh_token(self, client_id: str, token: str) -> Admission:
        """Exchange a refresh token for a new pair; it stays usable until its own end. Raises `BadRequest`."""
        claims = self._tokens.own_claims(token, use=REFRESH_USE)
        if claims is None or claims.get("extension_id") != client_id:
            raise wrong_refresh_token()
        channel_id, link = str(claims.get("channel_id")), str(claims.get("link"))
        await self._extend(client_id, channel_id, link, wrong_refresh_token())
        return self._admitted(client_id, channel_id, link, "refreshed")

    async def authenticate_by_jwt(self, client_id: str, token: str) -> Admission:
        """Take the rights of an access token; a broadcaster's is answered with a pair. Raises `Unauthorized`."""
        caller = await self._caller(f"{client_id} {token}")
        channel_id = caller.channel_id
        if caller.role is Role.BROADCASTER and channel_id:
            link = await self._link(client_id, channel_id)
            return self._admitted(client_id, channel_id, link, "authenticated")
        answer = Authenticated(token)
        if channel_id:
            answer.twitch_id = answer.twitch_name = channel_id
        return Admission(caller, answer, "authenticated")

    async def announce(self, admission: Admission) -> None:
        """Tell subscribers that somebody was admitted; once the connection follows its own channel."""
        if admission.caller.channel_id:
            await self._tell(admission.caller.client_id, admission.caller.channel_id, admission.event)

    async def _new(self, client_id: str, **members: str | int) -> str:
        """A PIN that no other live one of the client id has."""
        for _ in range(_TRIES):
            now, pin = self._clock.now(), new_pin()
            key = pin_key(client_id, pin, self._service_key.value)
            text = json_codec.encode(msgspec.convert({"until": now + PIN_LIFETIME, **members}, PinRecord))

            def keep(found: Mapping[Key, bytes], key: Key = key, text: bytes = text) -> Mapping[Key, bytes]:
                return {} if found else {key: text}

            if await self._documents.update([key], keep, now=now, expires_at=now + PIN_LIFETIME):
                return pin
        raise EngineError(f"no free PIN in {_TRIES} tries")

    async def _link(self, client_id: str, channel_id: str, *, use: bool = False) -> str:
        """The channel's link, made if there is none."""
        key, fresh = link_key(client_id, channel_id), new_id()

        def ensure(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            link = _record(found.get(key), LinkRecord) or LinkRecord(fresh)
            link.is_used = link.is_used or use
            return {key: json_codec.encode(link)}

        now = self._clock.now()
        written = await self._documents.update([key], ensure, now=now, expires_at=now + LINK_LIFETIME)
        return msgspec.json.decode(written[key], type=LinkRecord).link

    async def _extend(self, client_id: str, channel_id: str, link: str, refused: BadRequest) -> None:
        """Have a link live on from now, because a pair of tokens is handed out; raises `refused` if it is revoked."""
        key = link_key(client_id, channel_id)

        def extend(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            alive = _record(found.get(key), LinkRecord)
            if alive is None or alive.link != link:
                raise refused
            alive.is_used = True
            return {key: json_codec.encode(alive)}

        now = self._clock.now()
        await self._documents.update([key], extend, now=now, expires_at=now + LINK_LIFETIME)

    async def _is_good(self, caller: Caller, record: PinRecord) -> bool:
        """Whether a PIN was not revoked since it was bound."""
        return not record.link or await self._is_alive(caller.client_id, record.channel_id, record.link)

    def _failed(self, client_id: str) -> None:
        """Count a wrong PIN. Of a client id that is not registered there is no PIN to guess."""
        if self._extensions.admits(client_id):
            self.attempt_limit.failed(client_id)

    async def _is_alive(self, client_id: str, channel_id: str, link: str) -> bool:
        alive = await self._read(link_key(client_id, channel_id), LinkRecord)
        return alive is not None and alive.link == link

    def _admitted(self, client_id: str, channel_id: str, link: str, event: str) -> Admission:
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
        return Admission(caller, Authenticated(access, refresh, channel_id, channel_id), event)

    async def _tell(self, client_id: str, channel_id: str, event: str, *, waiting: bool = False) -> None:
        """Tell subscribers of the channel; with `waiting`, also those of the client id who wait for a PIN."""
        update = AuthenticationEvent(event, channel_id)
        await self._publisher.try_publish(authentication_topic(client_id, channel_id), "authentication", update)
        if waiting:
            await self._publisher.try_publish(authentication_topic(client_id), "authentication", update)

    async def _read(self, key: Key, shape: type[T]) -> T | None:
        return _record((await self._documents.read([key], now=self._clock.now())).get(key), shape)


def _record(text: bytes | None, shape: type[T]) -> T | None:
    return None if text is None else msgspec.json.decode(text, type=shape)
