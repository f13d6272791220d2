"""The links of channels, and the live PINs and their tokens, as they are stored.

The tokens of games depend on the links; a revocation or a retired secret ends them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct

from emulator.auth.refusals import ended_link, expired
from emulator.auth.signing_key import SigningKey
from emulator.auth.tokens import Tokens
from emulator.contract.limits import PIN_LIFETIME
from emulator.core.callers import Caller, Grant, Role, opaque_id_of
from emulator.core.changes import Change, Changes
from emulator.core.clock import SECOND, Clock
from emulator.core.errors import BadRequest, EngineError, Facts, ServiceError, refusal
from emulator.core.ids import NewId, new_pin
from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.features.kinds import Kind, Subject
from emulator.features.pins.rules import REFRESH_LIFETIME
from emulator.storage.kinds import Stored, decode_check
from emulator.storage.records import DocumentRecord
from emulator.storage.shapes import Catalog, CatalogSearch, Documents, Texts

T = TypeVar("T")
_MAX_TRIES = 20
PIN = "pin"
"""The kind of the keys of PINs."""
_MIN_DIGEST_LENGTH = 16
"""Characters of a digest that name a PIN."""


@refusal(BadRequest, "Invalid PIN", "T3", "The PIN is wrong or has expired",
         "Request a new PIN, `extcli pin request`, and type it within five minutes.")  # fmt: skip
def wrong_pin() -> Facts:
    """Refuse a PIN that is wrong, expired, revoked or another client id's. The text does not reveal which."""
    held = "a PIN that is not valid for this client id and channel"
    return Facts("the PIN is wrong or has expired", held, "a PIN of the last five minutes, not revoked")


class PinRecord(Struct):
    """A live PIN. Only its digest is stored, in the key.

    An expired PIN is gone: the engine no longer returns its record, so it is refused like a wrong one. A PIN also ends
    with the link that it was bound to, or when the control API makes it expire; a use does not end it.
    """

    until: int = 0
    """When the PIN expires, in Unix ms."""
    channel_id: str = ""
    """The channel that the PIN is bound to; empty for an unbound PIN."""
    link: str = ""
    """The id of the link that the PIN was bound to. A revocation ends that link."""
    cap: int | None = None
    """No token that the PIN gives outlives this, in Unix ms: the `exp` of the issued token that bound the PIN."""
    token_id: str = ""
    """The `jti` of the token that becomes valid with this PIN; empty if there is none."""
    token_until: int = 0
    """When that token expires, in Unix ms."""

    def may_be_bound_to(self, channel_id: str) -> bool:
        """Whether the PIN is not bound to a channel, or is bound to this one."""
        return self.channel_id in ("", channel_id)


class Link(Struct):
    """A link, which permits games to act for a channel.

    Each token names its link, so deleting a link revokes its tokens.
    """

    id: str
    secret: str
    """The fingerprint of the secret that admitted it; retiring that secret ends the link. Empty in the sandbox."""
    at: int
    """When it was made, in Unix ms."""
    until: int
    """When it expires, in Unix ms: with its newest refresh token."""
    is_used: bool = False
    """Whether a token was ever issued for it."""

    @property
    def grant(self) -> Grant:
        return Grant(self.secret, self.id, self.at)

    def game_caller(self, client_id: str, channel_id: str, expires_at: int | None = None) -> Caller:
        """Return the broadcaster that a game with this link acts as."""
        opaque_id, derived = opaque_id_of(channel_id), True
        return Caller(client_id, Role.BROADCASTER, channel_id, channel_id, opaque_id, expires_at, self.grant, derived)


class LinksRecord(Struct):
    """The links of one channel: at most one for each secret that admitted games."""

    links: list[Link] = []


class PinTokenRecord(Struct):
    """A token of `POST pin` whose PIN was validated."""

    channel_id: str
    link: str


def expiry_cap(caller: Caller) -> int | None:
    """Return the latest expiry, in Unix ms, of anything made with an issued token. `None` for other tokens."""
    return caller.expires_at if caller.grant.link else None


@dataclass(eq=False, repr=False)
class Links:
    """The links of all channels. Each belongs to the secret that admitted it, and ends with it."""

    _documents: Documents
    _clock: Clock
    _tokens: Tokens
    _changes: Changes
    _new_id: NewId

    async def current_links(self, client_id: str, channel_id: str) -> list[Link]:
        """Return the channel's links that have not ended."""
        key, now = Key("link", client_id, "", channel_id), self._clock.now()
        found = await self._documents.read([key], now=now)
        links = _unexpired_links(found.get(key), now)
        return [link for link in links if self._tokens.is_admitted(client_id, link.grant)]

    async def find(self, client_id: str, channel_id: str, link_id: str) -> Link | None:
        """Return a link that has not ended, by its id."""
        links = await self.current_links(client_id, channel_id)
        return next((link for link in links if link.id == link_id), None)

    async def link_for(self, caller: Caller, channel_id: str, *, use: bool = False) -> Link:
        """Return the link that the caller's token names.

        For a token that the extension signed, return the channel's link, created if missing. Raises `Unauthorized` if
        the token names a link that has ended, or has expired itself: no leeway lets it make what must not outlive it.
        """
        cap, now = expiry_cap(caller), self._clock.now()
        if cap is not None and cap <= now:
            raise expired(exp=cap // SECOND, now=now // SECOND)
        return await self.renew_link(caller.client_id, channel_id, caller.grant, ended_link, use=use)

    async def renew_link(
        self, client_id: str, channel_id: str, grant: Grant, error: Callable[[], ServiceError], *, use: bool = True
    ) -> Link:
        """Restart the lifetime of the link that `grant` names.

        If it names none, use the link of its secret, created if missing.
        Raises `error` if the named link has ended. `use` records that a token was issued for it.
        """
        key, now = Key("link", client_id, "", channel_id), self._clock.now()
        new = Link(self._new_id(), grant.secret, now, now + REFRESH_LIFETIME)

        def change(found: Texts) -> Texts:
            links = _unexpired_links(found.get(key), now)
            link = self._find(client_id, links, grant)
            if link is None:
                if grant.link:
                    raise error()
                link = new
                # Other secrets' links stay: a process that has not reloaded yet may not know those secrets.
                links = [*(each for each in links if each.secret != new.secret), new]
            link.until, link.is_used = now + REFRESH_LIFETIME, link.is_used or use
            return {key: json_codec.encode(LinksRecord(links))}

        written = await self._documents.update([key], change, now=now, expires_at=now + REFRESH_LIFETIME)
        link = self._find(client_id, _unexpired_links(written[key], now), grant)
        if link is None:  # the secret was retired during the write
            raise error()
        if link.id == new.id:
            await self._changes.committed(Change(key, "linked", at=now))
        return link

    async def end_links(self, client_id: str, channel_id: str) -> bool:
        """End all links of a channel, with their PINs, PIN tokens and refresh tokens.

        Return whether the channel had a link.
        """
        key = Key("link", client_id, "", channel_id)
        ended = await self._documents.drop([key], now=self._clock.now()) > 0
        if ended:
            await self._changes.committed(Change(key, "cleared"))
        return ended

    def _find(self, client_id: str, links: Iterable[Link], grant: Grant) -> Link | None:
        for link in links:
            is_it = link.id == grant.link if grant.link else link.secret == grant.secret
            if is_it and self._tokens.is_admitted(client_id, link.grant):
                return link
        return None


def _unexpired_links(text: bytes | None, now: int) -> list[Link]:
    links = [] if text is None else msgspec.json.decode(text, type=LinksRecord).links
    return [link for link in links if now < link.until]


@dataclass(eq=False, repr=False)
class LivePins:
    """The unexpired PINs of all client ids. Only their digests are stored."""

    _documents: Documents
    _catalog: Catalog
    _clock: Clock
    _key: SigningKey

    async def create(self, client_id: str, record: PinRecord) -> str:
        """Store a new PIN that differs from the client id's other live PINs, and return it."""
        for _ in range(_MAX_TRIES):
            now, pin = self._clock.now(), new_pin()
            key = self._key_of(client_id, pin)
            record.until = now + PIN_LIFETIME
            text = json_codec.encode(record)

            def create(found: Texts, key: Key = key, text: bytes = text) -> Texts:
                return {} if found else {key: text}

            if await self._documents.update([key], create, now=now, expires_at=record.until, may_end_earlier=True):
                return pin
        raise EngineError(f"no free PIN in {_MAX_TRIES} tries")

    async def find(self, client_id: str, pin: str) -> PinRecord | None:
        """Return a live PIN."""
        return await self._read(self._key_of(client_id, pin), PinRecord)

    async def bind(self, caller: Caller, pin: str, record: PinRecord, link: Link) -> None:
        """Bind a PIN to the caller's channel, and make its token valid.

        A PIN that is already bound keeps its link. Raises `BadRequest` if another channel has bound the PIN in the
        meantime, or it has expired.
        """
        key, channel_id = self._key_of(caller.client_id, pin), caller.channel_id or ""

        def bind(found: Texts) -> Texts:
            current = msgspec.json.decode(found[key], type=PinRecord) if key in found else None
            if current is None or not current.may_be_bound_to(channel_id):
                raise wrong_pin()
            if not current.link:
                current.channel_id, current.link, current.cap = channel_id, link.id, expiry_cap(caller)
            return {key: json_codec.encode(current)}

        now = self._clock.now()
        written = await self._documents.update([key], bind, now=now, expires_at=record.until, may_end_earlier=True)
        bound = msgspec.json.decode(written[key], type=PinRecord)
        if bound.token_id:
            token_key = Key("pin_token", caller.client_id, bound.token_id)
            text = json_codec.encode(PinTokenRecord(channel_id, bound.link))
            until = min(bound.token_until, bound.cap or bound.token_until)
            await self._documents.update(
                [token_key], lambda _: {token_key: text}, now=now, expires_at=until, may_end_earlier=True
            )

    async def validated_token(self, client_id: str, token_id: str) -> PinTokenRecord | None:
        """Return the record of a token of `POST pin`, by its `jti`; `None` until its PIN is bound."""
        return await self._read(Key("pin_token", client_id, token_id), PinTokenRecord)

    async def expire(self, client_id: str, *, pin: str, digest: str) -> int:
        """Make a PIN expire now, given the PIN or at least 16 characters of its digest.

        Return 1, or 0 if no live PIN matches.
        """
        now, keys = self._clock.now(), []
        if pin:
            keys = [self._key_of(client_id, pin)]
        elif len(digest) >= _MIN_DIGEST_LENGTH:
            search = CatalogSearch([PIN], client_id, matching=digest)
            things = await self._catalog.things(search, now=now, limit=2)
            keys = [thing.key for thing in things if thing.key.name.startswith(digest)]
        return await self._documents.drop(keys, now=now) if keys else 0

    def _key_of(self, client_id: str, pin: str) -> Key:
        """Return the key of a PIN. It has a keyed digest, so the time of a lookup reveals nothing about the PIN."""
        digest = hmac.new(self._key.value.encode(), f"{client_id}\n{pin}".encode(), hashlib.sha256)
        return Key(PIN, client_id, digest.hexdigest())

    async def _read(self, key: Key, shape: type[T]) -> T | None:
        found = await self._documents.read([key], now=self._clock.now())
        return msgspec.json.decode(found[key], type=shape) if key in found else None


def _pin_facts(value: bytes, now: int) -> dict[str, object]:
    channel_id = msgspec.json.decode(value, type=PinRecord).channel_id
    return {"channel_id": channel_id, "status": "bound" if channel_id else "unbound", "size": UNSET}


PINS = Kind(
    "pins",
    "the valid PINs, each shown by its digest only",
    (PIN,),
    PIN_LIFETIME,
    (
        Stored(DocumentRecord, PIN, decode_check(PinRecord), has_secret_name=True),
        Stored(DocumentRecord, "pin_token", decode_check(PinTokenRecord), has_secret_name=True),
    ),
    _pin_facts,
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
LINKS = Kind(
    "links",
    "the channels that games are linked to",
    ("link",),
    REFRESH_LIFETIME,
    (Stored(DocumentRecord, "link", decode_check(LinksRecord)),),
    waits_for=Subject("link", "link", frozenset({"count"}), "*", is_named=False),
)
