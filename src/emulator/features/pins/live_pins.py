"""Live PINs, and the tokens that became valid with them, as they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from emulator.auth.signing_key import SigningKey
from emulator.callers import Caller
from emulator.clock import Clock
from emulator.engines.shapes import Catalog, Documents, Key
from emulator.errors import EngineError
from emulator.features.pins.refusals import wrong_pin
from emulator.features.pins.rules import (
    MIN_DIGEST,
    PIN,
    PIN_LIFETIME,
    Link,
    PinRecord,
    PinTokenRecord,
    cap_of,
    pin_key,
    pin_token_key,
)
from emulator.ids import pin as new_pin
from emulator.wire import json_codec

T = TypeVar("T")
_MAX_TRIES = 20


class LivePins:
    """The unexpired PINs of all client ids. Only their digests are stored."""

    def __init__(self, documents: Documents, catalog: Catalog, clock: Clock, key: SigningKey) -> None:
        self._documents = documents
        self._catalog = catalog
        self._clock = clock
        self._key = key

    async def create(self, client_id: str, record: PinRecord) -> str:
        """Store a new PIN that differs from the client id's other live PINs, and return it."""
        for _ in range(_MAX_TRIES):
            now, pin = self._clock.now(), new_pin()
            key = self._key_of(client_id, pin)
            record.until = now + PIN_LIFETIME
            text = json_codec.encode(record)

            def create(found: Mapping[Key, bytes], key: Key = key, text: bytes = text) -> Mapping[Key, bytes]:
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

        def bind(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            current = _decode_record(found.get(key), PinRecord)
            if current is None or not current.may_be_bound_to(channel_id):
                raise wrong_pin()
            if not current.link:
                current.channel_id, current.link, current.cap = channel_id, link.id, cap_of(caller)
            return {key: json_codec.encode(current)}

        now = self._clock.now()
        written = await self._documents.update([key], bind, now=now, expires_at=record.until, may_end_earlier=True)
        bound = msgspec.json.decode(written[key], type=PinRecord)
        if bound.token_id:
            token_key = pin_token_key(caller.client_id, bound.token_id)
            text = json_codec.encode(PinTokenRecord(channel_id, bound.link))
            until = min(bound.token_until, bound.cap or bound.token_until)
            await self._documents.update(
                [token_key], lambda _: {token_key: text}, now=now, expires_at=until, may_end_earlier=True
            )

    async def validated_token(self, client_id: str, token_id: str) -> PinTokenRecord | None:
        """Return the record of a token of `POST pin`, by its `jti`; `None` until its PIN is bound."""
        return await self._read(pin_token_key(client_id, token_id), PinTokenRecord)

    async def expire(self, client_id: str, *, pin: str, digest: str) -> int:
        """Make a PIN expire now, given the PIN or at least 16 characters of its digest.

        Return 1, or 0 if no live PIN matches.
        """
        keys = [self._key_of(client_id, pin)] if pin else await self._keys_with(client_id, digest)
        return await self._documents.drop(keys, now=self._clock.now()) if keys else 0

    async def _keys_with(self, client_id: str, digest: str) -> list[Key]:
        """Return the keys of at most two live PINs whose digest begins with this text."""
        if len(digest) < MIN_DIGEST:
            return []
        things = await self._catalog.things([PIN], now=self._clock.now(), limit=2, owner=client_id, matching=digest)
        return [thing.key for thing in things if thing.key.name.startswith(digest)]

    def _key_of(self, client_id: str, pin: str) -> Key:
        return pin_key(client_id, pin, self._key.value)

    async def _read(self, key: Key, shape: type[T]) -> T | None:
        return _decode_record((await self._documents.read([key], now=self._clock.now())).get(key), shape)


def _decode_record(text: bytes | None, shape: type[T]) -> T | None:
    return None if text is None else msgspec.json.decode(text, type=shape)
