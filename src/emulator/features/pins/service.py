"""Creates, validates and revokes PINs (ruling T2), and exchanges them for the tokens of linked games."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET
from msgspec.structs import replace

from emulator.auth.refusals import ended_link
from emulator.auth.signing_key import SigningKey
from emulator.auth.tokens import PIN_USE, REFRESH_USE, Credential, Tokens
from emulator.core.callers import CHANNEL_WRITERS, Caller, Grant, Role, required_channel
from emulator.core.changes import Change, Changes
from emulator.core.clock import SECOND, Clock
from emulator.core.extensions import Extensions
from emulator.core.ids import NewId, token_id
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.parity import PIN_CHANNEL, ProductionCheck, current_verdict, set_verdict
from emulator.core.settings import Settings
from emulator.core.wire.refusals import wrong_shape
from emulator.features.kinds import Measured
from emulator.features.pins import rules
from emulator.features.pins.attempt_limit import AttemptLimit
from emulator.features.pins.links import LINKS, PIN, Link, Links, LivePins, PinRecord, expiry_cap, wrong_pin
from emulator.features.pins.rules import Credentials
from emulator.http.endpoint import CHANNEL, Audience, Call, Nothing, control_endpoint, endpoint, endpoints_in
from emulator.realtime.action import Message, action, feed
from emulator.realtime.publisher import Publisher
from emulator.realtime.session import Session
from emulator.storage.shapes import Catalog, CatalogSearch, Documents

LoggedIn = tuple[Caller, rules.Authenticated]
"""A successful `authenticate`: the connection's new caller, and the reply."""
_MAX_COUNTED_CHANNELS = 200
"""Linked channels that a wait counts."""
_BROADCASTER = frozenset({Role.BROADCASTER})
_SECRETS = frozenset({"pin", "token", "jwt"})


@dataclass(eq=False, repr=False)
class Pins:
    """PINs, links and tokens."""

    _documents: Documents
    _clock: Clock
    _tokens: Tokens
    _settings: Settings
    _extensions: Extensions
    _publisher: Publisher
    _service_key: SigningKey
    _changes: Changes
    _catalog: Catalog
    _new_id: NewId = token_id

    def __post_init__(self) -> None:
        settings = self._settings
        there = None if settings.environment.is_strict else settings.production_anonymous
        self.attempt_limit = AttemptLimit(self._clock, settings.anonymous, there)
        self._links = Links(self._documents, self._clock, self._tokens, self._changes, self._new_id)
        self._live = LivePins(self._documents, self._catalog, self._clock, self._service_key)

    @endpoint(
        "POST",
        "/v1/e/link/pin",
        audience=Audience.CLIENT_ID,
        body=rules.ClientBody,
        answer=rules.Pin,
        query=(CHANNEL,),
        secrets=_SECRETS,
    )
    async def request_pin(self, call: Call) -> rules.Pin:
        """Request a PIN for a game to send over the socket.

        With a broadcaster's token, or an admin or backend token and a channel, the PIN is bound to that channel.
        Otherwise only the client id is needed, in the Authorization header or as `identifier`; `validate_pin` binds the
        PIN later.
        """
        may_bind = call.has_caller and call.caller.role in CHANNEL_WRITERS
        if may_bind and (channel := call.channel):
            link = await self._links.link_for(call.caller, channel)
            record = PinRecord(channel_id=channel, link=link.id, cap=expiry_cap(call.caller))
            pin = await self._create_pin(call.caller.client_id, record)
        else:
            client_id = self._client_id(call)
            if not may_bind:
                self.attempt_limit.count_request(call.peer)
            pin = await self._create_pin(client_id, PinRecord())
        return rules.Pin(pin, pin)

    @endpoint(
        "POST", "/v1/e/pin", audience=Audience.PUBLIC, body=rules.ClientBody, answer=rules.PinAndToken, secrets=_SECRETS
    )
    async def issue_pin(self, call: Call) -> rules.PinAndToken:
        """Request a PIN to show to a broadcaster, and a token that is invalid until `validate_pin`.

        The token is valid once `user_info` returns 200 for it.
        """
        client_id = self._client_id(call)
        self.attempt_limit.count_request(call.peer)
        jti, until = self._new_id(), self._clock.now() + rules.ACCESS_LIFETIME
        token = self._tokens.issue(
            rules.ACCESS_LIFETIME, use=PIN_USE, role=Role.BROADCASTER, extension_id=client_id, jti=jti
        )
        pin = await self._create_pin(client_id, PinRecord(token_id=jti, token_until=until))
        return rules.PinAndToken(token, pin)

    @endpoint("POST", "/v1/e/validate_pin", roles=_BROADCASTER, body=rules.PinBody, secrets=_SECRETS)
    async def validate_pin(self, call: Call) -> Nothing:
        """Bind a PIN and its token to the broadcaster's channel."""
        caller, pin = call.caller, call.body(rules.PinBody).pin
        client_id, channel_id = caller.client_id, required_channel(caller.channel_id, "a link")
        with self.attempt_limit.attempt(client_id, user=f"{channel_id}\0{caller.opaque_id}"):
            record = await self._live.find(client_id, pin)
            if record is None or not record.may_be_bound_to(channel_id):
                raise wrong_pin()
            if record.link and await self._links.find(client_id, record.channel_id, record.link) is None:
                raise wrong_pin()  # it was bound to a link that has ended
            link = await self._links.link_for(caller, channel_id, use=bool(record.token_id))
            await self._live.bind(caller, pin, record, link)
            await self._report_change("used", client_id, channel_id)
            await self._publish(client_id, channel_id, "authenticated")
            shown = UNSET if self._settings.environment.is_strict else channel_id
            event = rules.AuthenticationEvent("authenticated", shown)  # for connections without a channel
            await self._publisher.try_publish(rules.authentication_topic(client_id), "authentication", event)
        return Nothing()

    async def authenticate(self, header: str | None) -> Caller:
        """Verify an `Authorization` header. Raises `Unauthorized` or `Forbidden`."""
        credential = self._tokens.verify(header)
        if credential.pin_token_id:
            return await self._linked_caller(credential)
        return credential.caller

    async def _linked_caller(self, credential: Credential) -> Caller:
        """Return the caller behind a token of `POST pin`. Raises `Unauthorized` until its PIN is validated."""
        caller = credential.caller
        record = await self._live.validated_token(caller.client_id, credential.pin_token_id)
        if record is None:
            raise rules.not_validated()
        link = await self._links.find(caller.client_id, record.channel_id, record.link)
        if link is None:
            raise ended_link()
        return link.game_caller(caller.client_id, record.channel_id, caller.expires_at)

    @endpoint("POST", "/v1/e/unauthed/validate_pin", audience=Audience.PUBLIC, body=rules.TokenBody, secrets=_SECRETS)
    async def check_pin_token(self, call: Call) -> Nothing:
        """Return 200 once the PIN behind a token of `POST pin` was validated, and 401 before.

        A `pin` in place of the token is refused: the response would reveal whether a PIN is right.
        """
        client_id, token = self._client_id(call), call.body(rules.TokenBody).jwt
        if not token:
            raise rules.no_pin_token()
        credential = self._tokens.verify(f"{client_id} {token}")
        if not credential.pin_token_id:
            raise rules.not_a_pin_token()
        await self._linked_caller(credential)
        return Nothing()

    @endpoint("GET", "/v1/e/pin_token_exists", roles=_BROADCASTER, answer=rules.Existence)
    async def pin_token_exists(self, call: Call) -> rules.Existence:
        """Return whether a game has a token for the channel."""
        links = await self._links.current_links(call.caller.client_id, call.caller.channel_id or "")
        return rules.Existence(any(link.is_used for link in links))

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        """Count the linked channels, up to 200."""
        search = CatalogSearch(LINKS.stored_as, caller.client_id, channel)
        found = await self._catalog.things(search, now=self._clock.now(), limit=_MAX_COUNTED_CHANNELS)
        return Measured({"": len(found)})

    @endpoint("DELETE", "/v1/e/pin", roles=_BROADCASTER)
    async def revoke_pins(self, call: Call) -> Nothing:
        """Revoke all PINs, PIN tokens and refresh tokens of the channel."""
        caller, channel_id = call.caller, call.caller.channel_id or ""
        if await self._links.end_links(caller.client_id, channel_id):
            audit("links revoked", caller, channel=channel_id)
            await self._publisher.try_publish_raw(Key(rules.LINKS_ENDED, caller.client_id, "", channel_id))
        await self._report_change("revoked", caller.client_id, channel_id)
        await self._publish(caller.client_id, channel_id, "revoked")
        return Nothing()

    @control_endpoint("POST", "/_emulator/pins/expire", body=rules.Expiry, secrets=frozenset({"pin"}))
    async def expire_pin(self, call: Call) -> Nothing:
        """Make one PIN expire now, without moving the clock. Links made with the PIN stay."""
        body = call.body(rules.Expiry)
        if bool(body.pin) == bool(body.digest):
            raise wrong_shape("pin, digest", problem="send exactly one of them", needed="exactly one of pin and digest")
        count = await self._live.expire(body.client_id, pin=body.pin, digest=body.digest)
        if not count:
            raise wrong_pin() if body.pin else rules.no_live_pin(digest=body.digest)
        audit("pins expired", pins=count, extension=body.client_id)
        await self._report_change("expired", body.client_id, "")
        return Nothing()

    async def link(self, caller: Caller, channel_id: str) -> str:
        """Link a game to the channel without a PIN, and return the game's refresh token."""
        link = await self._links.link_for(caller, channel_id, use=True)
        _, reply = self._issue_tokens(caller.client_id, channel_id, link, None)
        return str(reply.refresh)

    @action("authenticate", is_open=True, secrets=frozenset({"pin", "refresh", "jwt"}))
    async def log_in(self, message: Message) -> rules.Authenticated:
        """Give the connection the rights of a PIN, a refresh token or an access token. A failure changes nothing."""
        session, body = message.session, message.body(Credentials)
        client_id = rules.checked_client_id(body.client_id or session.client_id, "data.client_id")
        if [body.pin, body.refresh, body.jwt].count(None) != 2:
            raise rules.not_one_credential()
        topic = _authentication_topic(session)
        if body.pin is not None:
            caller, reply = await self._authenticate_by_pin(client_id, body.pin, session.connection.address)
        elif body.refresh is not None:
            caller, reply = await self._authenticate_by_refresh_token(client_id, body.refresh)
        else:
            caller, reply = await self._authenticate_by_jwt(client_id, body.jwt or "")
        if not self._tokens.is_admitted(caller.client_id, caller.grant):  # the secret or link ended while it waited
            raise ended_link()
        was_subscribed = topic in session.topics
        # Without these rights, production refuses all other actions.
        session.set_caller(replace(caller, production=current_verdict()))
        session.unsubscribe(topic)
        if was_subscribed:
            session.subscribe(_authentication_topic(session))
        if caller.channel_id:  # now that the connection has subscribed to its channel
            event = "authenticated" if body.refresh is None else "refreshed"
            await self._publish(caller.client_id, caller.channel_id, event)
        return reply

    @feed("authentication", is_open=True)
    async def authentication_feed(self, message: Message) -> tuple[Key, ...]:
        """Follow authentications and revocations of the connection's client id and channel."""
        return (_authentication_topic(message.session),)

    async def _authenticate_by_pin(self, client_id: str, pin: str, address: str) -> LoggedIn:
        """Exchange a PIN for an access and a refresh token. Raises `BadRequest` and `TooManyRequests`."""
        with self.attempt_limit.attempt(client_id, address):
            record = await self._live.find(client_id, pin)
            if record is None:
                raise wrong_pin()
            if record.cap is not None and record.cap <= self._clock.now():  # the token that made it has expired
                raise wrong_pin()
            with ProductionCheck(PIN_CHANNEL, raises=self._settings.environment.is_strict):
                if not record.channel_id:
                    raise wrong_pin()
        channel_id = record.channel_id
        if not channel_id:
            extension = self._extensions.find(client_id)
            channel_id = (extension and extension.owner_user_id) or rules.TEST_CHANNEL
        link = await self._links.renew_link(client_id, channel_id, Grant(link=record.link), wrong_pin)
        await self._report_change("used", client_id, channel_id)
        return self._issue_tokens(client_id, channel_id, link, record.cap)

    async def _authenticate_by_refresh_token(self, client_id: str, token: str) -> LoggedIn:
        """Exchange a refresh token for new tokens; the old one stays usable until it expires. Raises `BadRequest`."""
        claims = self._tokens.refresh_claims(token)
        if claims is None or claims.get("extension_id") != client_id:
            raise rules.wrong_refresh_token()
        channel_id = str(claims.get("channel_id"))
        grant = Grant(link=str(claims.get("link")))
        link = await self._links.renew_link(client_id, channel_id, grant, rules.wrong_refresh_token)
        cap = claims["exp"] * SECOND if claims.get("capped") else None
        return self._issue_tokens(client_id, channel_id, link, cap)

    async def _authenticate_by_jwt(self, client_id: str, token: str) -> LoggedIn:
        """Accept an access token, and issue new tokens if it is a broadcaster's. Raises `Unauthorized`.

        New tokens for an issued token belong to that token's link, and do not outlive it.
        """
        header = f"{client_id} {token}"
        caller = self._tokens.cached_caller(header) or await self.authenticate(header)
        set_verdict(caller.production)
        channel_id = caller.channel_id
        if caller.role is Role.BROADCASTER and channel_id:
            link = await self._links.link_for(caller, channel_id)
            return self._issue_tokens(client_id, channel_id, link, expiry_cap(caller))
        reply = rules.Authenticated(token)
        if channel_id:
            reply.twitch_id = reply.twitch_name = channel_id
        return caller, reply

    def _client_id(self, call: Call) -> str:
        """Return the client id in the Authorization header, or by default in the body."""
        if call.client_id:
            return call.client_id
        body = call.body(rules.ClientBody) if call.raw.strip() else rules.ClientBody()
        client_id = rules.checked_client_id(body.identifier, "identifier")
        self._tokens.check_registered(client_id)
        return client_id

    async def _create_pin(self, client_id: str, record: PinRecord) -> str:
        pin = await self._live.create(client_id, record)
        await self._report_change("issued", client_id, record.channel_id)
        return pin

    def _issue_tokens(self, client_id: str, channel_id: str, link: Link, cap: int | None) -> LoggedIn:
        """Issue an access and a refresh token of a link; neither outlives `cap`, in Unix ms."""
        caller = link.game_caller(client_id, channel_id)
        left = rules.REFRESH_LIFETIME if cap is None else cap - self._clock.now()
        access = self._tokens.issue(
            min(rules.ACCESS_LIFETIME, left),
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
        return caller, rules.Authenticated(access, refresh, channel_id, channel_id)

    async def _publish(self, client_id: str, channel_id: str, event: str) -> None:
        """Publish an authentication event to the channel."""
        data = rules.AuthenticationEvent(event, channel_id)
        await self._publisher.try_publish(rules.authentication_topic(client_id, channel_id), "authentication", data)

    async def _report_change(self, did: str, client_id: str, channel_id: str) -> None:
        await self._changes.committed(Change(Key(PIN, client_id, "", channel_id), did))


def _authentication_topic(session: Session) -> Key:
    caller = session.caller
    if caller is None:
        return rules.authentication_topic(session.client_id)
    return rules.authentication_topic(caller.client_id, caller.channel_id or "")


endpoints = tuple(each for each in endpoints_in(Pins) if each.audience is not Audience.CONTROL)
control = (Pins.expire_pin,)
