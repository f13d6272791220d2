"""Creates, validates and revokes PINs, and exchanges them for the tokens of linked games."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET

from emulator.auth.refusals import ended_link
from emulator.auth.signing_key import SigningKey
from emulator.auth.tokens import PIN_USE, REFRESH_USE, Tokens
from emulator.core.callers import Caller, Grant, Role, required_channel
from emulator.core.changes import Change, Commits
from emulator.core.clock import SECOND, Clock
from emulator.core.config.extensions import Extensions
from emulator.core.config.settings import Settings
from emulator.core.errors import stopping
from emulator.core.ids import NewId, token_id
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.parity import PIN_CHANNEL, ProductionCheck
from emulator.features.pins.attempt_limit import AttemptLimit
from emulator.features.pins.links import Links, LivePins
from emulator.features.pins.rules import (
    ACCESS_LIFETIME,
    LINK_LIFETIME,
    LINKS_ENDED,
    PIN,
    PIN_LIFETIME,
    REFRESH_LIFETIME,
    STORED,
    TEST_CHANNEL,
    Authenticated,
    AuthenticationEvent,
    Link,
    PinRecord,
    authentication_topic,
    broadcaster_of,
    cap_of,
    no_live_pin,
    not_a_pin_token,
    not_validated,
    wrong_pin,
    wrong_refresh_token,
)
from emulator.realtime.publisher import Publisher
from emulator.storage.kinds import Kind, Measured, Shape, Subject
from emulator.storage.shapes import Catalog, Documents


class AuthResult(NamedTuple):
    """A successful `authenticate`."""

    caller: Caller
    """The connection's new caller."""
    reply: Authenticated
    event: str
    """The event for subscribers of `authentication`."""


_COUNTED: Final = 200
"""Linked channels that a wait counts."""


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
    _commits: Commits
    _catalog: Catalog
    _new_id: NewId = token_id

    def __post_init__(self) -> None:
        settings = self._settings
        there = None if settings.environment.verifies_tokens else settings.production_anonymous
        self.attempt_limit = AttemptLimit(self._clock, settings.anonymous, there)
        self._links = Links(self._documents, self._clock, self._tokens, self._commits, self._new_id)
        self._live = LivePins(self._documents, self._catalog, self._clock, self._service_key)

    async def request(self, client_id: str, address: str | None) -> str:
        """Create a PIN that is not bound to a channel.

        Raises `TooManyRequests` if `address` has requested too many PINs. `address` is `None` for authenticated
        callers.
        """
        if address is not None:
            self.attempt_limit.count_request(address)
        return await self._create_pin(client_id, PinRecord())

    async def request_bound(self, caller: Caller, channel_id: str) -> str:
        """Create a PIN that is bound to a channel. Raises `Unauthorized` for an issued token whose link has ended."""
        link = await self._links.of(caller, channel_id)
        return await self._create_pin(
            caller.client_id, PinRecord(channel_id=channel_id, link=link.id, cap=cap_of(caller))
        )

    async def issue(self, client_id: str, address: str) -> tuple[str, str]:
        """Create a broadcaster's token that is invalid until its PIN is validated; return the token and the PIN.

        Raises `TooManyRequests` if the address has requested too many.
        """
        self.attempt_limit.count_request(address)
        jti, until = self._new_id(), self._clock.now() + ACCESS_LIFETIME
        token = self._tokens.issue(ACCESS_LIFETIME, use=PIN_USE, role=Role.BROADCASTER, extension_id=client_id, jti=jti)
        return token, await self._create_pin(client_id, PinRecord(token_id=jti, token_until=until))

    async def validate(self, caller: Caller, pin: str) -> None:
        """Bind a PIN and its token to the broadcaster's channel. A bound PIN keeps its link.

        Raises `BadRequest`, `TooManyRequests`, and `Unauthorized` for an issued token whose link has ended.
        """
        client_id, channel_id = caller.client_id, required_channel(caller.channel_id, "a link")
        with self.attempt_limit.attempt_of_caller(caller):
            record = await self._live.find(client_id, pin)
            if record is None or not record.may_be_bound_to(channel_id) or await self._has_ended(client_id, record):
                raise wrong_pin()
            link = await self._links.of(caller, channel_id, use=bool(record.token_id))
            await self._live.bind(caller, pin, record, link)
            await self._report_change("used", client_id, channel_id)
            await self._publish(client_id, channel_id, "authenticated", also_unauthenticated=True)

    async def _has_ended(self, client_id: str, record: PinRecord) -> bool:
        """Whether the PIN is bound to a link that has ended."""
        return bool(record.link) and await self._links.find(client_id, record.channel_id, record.link) is None

    async def linked_caller(self, caller: Caller, token_id: str) -> Caller:
        """Return the caller behind a token of `POST pin`. Raises `Unauthorized` until its PIN is validated."""
        record = await self._live.validated_token(caller.client_id, token_id)
        if record is None:
            raise not_validated()
        link = await self._links.find(caller.client_id, record.channel_id, record.link)
        if link is None:
            raise ended_link()
        return broadcaster_of(caller.client_id, record.channel_id, link, caller.expires_at)

    async def check_validated(self, client_id: str, token: str) -> None:
        """Raise `Unauthorized` unless this is a token of `POST pin` whose PIN was validated."""
        credential = self._tokens.verify(f"{client_id} {token}")
        if not credential.pin_token_id:
            raise not_a_pin_token()
        await self.linked_caller(credential.caller, credential.pin_token_id)

    def close(self) -> None:
        """Refuse logins from now on, and release the verifier of logins, which would keep this object alive."""
        self._authenticate = _refuse_login

    async def exists(self, caller: Caller) -> bool:
        """Return whether the channel has a token that was not revoked."""
        return any(link.is_used for link in await self._links.current(caller.client_id, caller.channel_id or ""))

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        """Count the linked channels, up to 200."""
        now = self._clock.now()
        found = await self._catalog.things(
            LINKS.stored_as, now=now, limit=_COUNTED, owner=caller.client_id, channel=channel
        )
        return Measured({"": len(found)})

    async def revoke(self, caller: Caller) -> None:
        """Revoke all PINs, PIN tokens and refresh tokens of the channel. Access tokens stay valid until they expire."""
        channel_id = caller.channel_id or ""
        if await self._links.end(caller.client_id, channel_id):
            audit("links revoked", caller, channel=channel_id)
            await self._publisher.try_notify(Key(LINKS_ENDED, caller.client_id, "", channel_id))
        await self._report_change("revoked", caller.client_id, channel_id)
        await self._publish(caller.client_id, channel_id, "revoked")

    async def expire(self, client_id: str, *, pin: str = "", digest: str = "") -> None:
        """Make a live PIN expire now. If it is not live, raises `BadRequest` for a PIN and `NotFound` for a digest.

        The first 16 characters of a digest are enough.
        """
        count = await self._live.expire(client_id, pin=pin, digest=digest)
        if not count:
            raise wrong_pin() if pin else no_live_pin(digest=digest)
        audit("pins expired", pins=count, extension=client_id)
        await self._report_change("expired", client_id, "")

    async def link(self, caller: Caller, channel_id: str) -> str:
        """Link a game to the channel without a PIN, and return the game's refresh token."""
        link = await self._links.of(caller, channel_id, use=True)
        return str(self._auth_result(caller.client_id, channel_id, link, "authenticated", None).reply.refresh)

    async def authenticate_by_pin(self, client_id: str, pin: str, address: str) -> AuthResult:
        """Exchange a PIN for an access and a refresh token. Raises `BadRequest` and `TooManyRequests`."""
        with self.attempt_limit.attempt(client_id, address):
            record = await self._live.find(client_id, pin)
            if record is None or (record.cap is not None and record.cap <= self._clock.now()):
                raise wrong_pin()  # also if the token that made it has expired
            with ProductionCheck(PIN_CHANNEL, raises=self._settings.environment.verifies_tokens):
                if not record.channel_id:
                    raise wrong_pin()
        channel_id = record.channel_id
        if not channel_id:
            extension = self._extensions.find(client_id)
            channel_id = (extension and extension.owner_user_id) or TEST_CHANNEL
        link = await self._links.renew(client_id, channel_id, Grant(link=record.link), wrong_pin)
        await self._report_change("used", client_id, channel_id)
        return self._auth_result(client_id, channel_id, link, "authenticated", record.cap)

    async def authenticate_by_refresh_token(self, client_id: str, token: str) -> AuthResult:
        """Exchange a refresh token for new tokens; the old one stays usable until it expires. Raises `BadRequest`."""
        claims = self._tokens.own_claims(token, use=REFRESH_USE)
        if claims is None or claims.get("extension_id") != client_id:
            raise wrong_refresh_token()
        channel_id, grant = str(claims.get("channel_id")), Grant(link=str(claims.get("link")))
        link = await self._links.renew(client_id, channel_id, grant, wrong_refresh_token)
        cap = claims["exp"] * SECOND if claims.get("capped") else None
        return self._auth_result(client_id, channel_id, link, "refreshed", cap)

    async def authenticate_by_jwt(self, client_id: str, token: str) -> AuthResult:
        """Accept an access token, and issue new tokens if it is a broadcaster's. Raises `Unauthorized`.

        New tokens for an issued token belong to that token's link, and do not outlive it.
        """
        caller = await self._authenticate(f"{client_id} {token}")
        channel_id = caller.channel_id
        if caller.role is Role.BROADCASTER and channel_id:
            link = await self._links.of(caller, channel_id)
            return self._auth_result(client_id, channel_id, link, "authenticated", cap_of(caller))
        reply = Authenticated(token)
        if channel_id:
            reply.twitch_id = reply.twitch_name = channel_id
        return AuthResult(caller, reply, "authenticated")

    def check_admitted(self, caller: Caller) -> None:
        """Raise `Unauthorized` if the secret or link behind the caller's rights ended while the request waited."""
        if not self._tokens.is_admitted(caller.client_id, caller.grant):
            raise ended_link()

    async def publish_authentication(self, result: AuthResult) -> None:
        """Publish the event of a login. Call this after the new connection has subscribed to its channel."""
        if result.caller.channel_id:
            await self._publish(result.caller.client_id, result.caller.channel_id, result.event)

    async def _create_pin(self, client_id: str, record: PinRecord) -> str:
        pin = await self._live.create(client_id, record)
        await self._report_change("issued", client_id, record.channel_id)
        return pin

    def _auth_result(self, client_id: str, channel_id: str, link: Link, event: str, cap: int | None) -> AuthResult:
        """Issue an access and a refresh token of a link; neither outlives `cap`, in Unix ms."""
        caller = broadcaster_of(client_id, channel_id, link)
        left = REFRESH_LIFETIME if cap is None else cap - self._clock.now()
        access = self._tokens.issue(
            min(ACCESS_LIFETIME, left),
            role=caller.role,
            channel_id=channel_id,
            user_id=caller.user_id,
            opaque_user_id=caller.opaque_id,
            extension_id=client_id,
            link=link.id,
            linked_at=link.at,
            admitted_by=link.secret or None,
        )
        refresh = self._tokens.issue(
            left,
            use=REFRESH_USE,
            extension_id=client_id,
            channel_id=channel_id,
            link=link.id,
            capped=None if cap is None else True,
        )
        return AuthResult(caller, Authenticated(access, refresh, channel_id, channel_id), event)

    async def _publish(
        self, client_id: str, channel_id: str, event: str, *, also_unauthenticated: bool = False
    ) -> None:
        """Publish an authentication event to the channel and, if asked for, to the client id's unauthenticated
        connections.
        """
        data = AuthenticationEvent(event, channel_id)
        await self._publisher.try_publish(authentication_topic(client_id, channel_id), "authentication", data)
        if also_unauthenticated:
            if self._settings.environment.verifies_tokens:
                data.twitch_id = UNSET
            await self._publisher.try_publish(authentication_topic(client_id), "authentication", data)

    async def _report_change(self, did: str, client_id: str, channel_id: str) -> None:
        await self._commits.committed(Change(Key(PIN, client_id, "", channel_id), did))


async def _refuse_login(header: str) -> Caller:
    raise stopping()


def _pin_condition(value: bytes, now: int) -> dict[str, object]:
    channel_id = msgspec.json.decode(value, type=PinRecord).channel_id
    return {"channel_id": channel_id, "status": "bound" if channel_id else "unbound", "size": UNSET}


PINS: Final = Kind(
    "pins",
    "the live PINs, by a digest. Never a PIN",
    (PIN,),
    Shape.DOCUMENTS,
    PIN_LIFETIME,
    "pins",
    STORED,
    _pin_condition,
    has_secret_names=True,
    waits_for=Subject(
        "pin",
        PIN,
        frozenset({"count"}),
        shared="",
        is_named=False,
        events=("issued", "used", "revoked"),
        is_stored=False,
    ),
)
LINKS: Final = Kind(
    "links",
    "the channels that games are linked to",
    ("link",),
    Shape.DOCUMENTS,
    LINK_LIFETIME,
    "links",
    waits_for=Subject("link", "link", frozenset({"count"}), "*", is_named=False),
    measure=attrgetter("pins.measure"),
)
