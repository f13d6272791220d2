"""Everything the service promises about purchases. A sandbox does not verify them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

import msgspec

from emulator.auth.tokens import Tokens
from emulator.callers import Caller
from emulator.clock import Clock
from emulator.engines.base import Documents, Key
from emulator.errors import BadRequest, NotFound
from emulator.features.transactions.rules import (
    LIFETIME,
    MOST_LISTED,
    Transaction,
    TransactionBody,
    outstanding_key,
    receipt_of,
    transaction_key,
    transaction_of,
    transaction_topic,
)
from emulator.ids import token_id as new_id
from emulator.realtime.publisher import Publisher
from emulator.wire import json_codec

ANY: Final = "*"
TARGET: Final = "twitchPurchaseBits"
_PAGE: Final = 100


class Transactions:
    """Purchases of a channel: posted once, then outstanding until a game validates or refunds them."""

    def __init__(self, documents: Documents, clock: Clock, tokens: Tokens, publisher: Publisher) -> None:
        self._documents = documents
        self._clock = clock
        self._tokens = tokens
        self._publisher = publisher

    async def record(self, caller: Caller, channel: str | None, body: TransactionBody) -> None:
        """Take a receipt and tell the channel's games, once for each transaction. Raises `BadRequest`."""
        place = _checked(channel)
        self._tokens.check_receipt(caller.client_id, body.transaction_receipt)
        now = self._clock.now()
        transaction = transaction_of(receipt_of(body.transaction_receipt), body, own_id=new_id(), now=now)
        kept = transaction_key(caller.client_id, place, transaction.id)
        outstanding = outstanding_key(caller.client_id, place, now, transaction.id)
        text = json_codec.encode(transaction)

        def keep(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            return {} if kept in found else {kept: text, outstanding: text}

        if await self._documents.update([kept, outstanding], keep, now=now, expires_at=now + LIFETIME):
            topic = transaction_topic(caller.client_id, place, transaction.sku)
            await self._publisher.try_publish(topic, TARGET, transaction)

    async def list_outstanding(self, caller: Caller, channel: str | None, sku: str) -> list[Transaction]:
        """What is neither validated nor refunded, `*` for all products; oldest first, at most 10."""
        listed: list[Transaction] = []
        async for _, transaction in self._outstanding(caller, _checked(channel)):
            if sku in (ANY, transaction.sku):
                listed.append(transaction)
                if len(listed) == MOST_LISTED:
                    break
        return listed

    async def settle(
        self, caller: Caller, channel: str | None, *, transaction_id: str = "", sku: str = "", user_id: str = ""
    ) -> None:
        """Validate or refund the purchase of that id, or that user's oldest of that product; raises `NotFound`."""
        if not (transaction_id or (sku and user_id)):
            raise BadRequest("Invalid body", "data: transaction_id is needed, or sku and user_id")
        async for key, one in self._outstanding(caller, _checked(channel)):
            if one.id == transaction_id if transaction_id else (one.sku, one.user_id) == (sku, user_id):
                await self._documents.drop([key], now=self._clock.now())
                return
        raise NotFound("Not Found", "no such transaction is outstanding")

    def topic(self, caller: Caller, channel: str | None, sku: str) -> Key:
        """What subscribers of a product's purchases follow."""
        return transaction_topic(caller.client_id, _checked(channel), sku)

    async def _outstanding(self, caller: Caller, place: str) -> AsyncIterator[tuple[Key, Transaction]]:
        shelf, after = outstanding_key(caller.client_id, place), ""
        while True:
            now = self._clock.now()
            holders = await self._documents.users(shelf, after=after, limit=_PAGE, now=now)
            keys = [shelf._replace(user=holder) for holder in holders]
            found = await self._documents.read(keys, now=now)
            for key in keys:
                if key in found:
                    yield key, msgspec.json.decode(found[key], type=Transaction)
            if len(holders) < _PAGE:
                return
            after = holders[-1]


def _checked(channel: str | None) -> str:
    if not channel:
        raise BadRequest("Invalid channel", "a purchase needs a channel: a token with channel_id, or ?channel_id=")
    return channel
