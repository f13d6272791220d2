"""Records purchases, notifies games of them, and keeps them until a game settles them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Protocol

import msgspec
from msgspec import UNSET

from emulator.auth.tokens import Tokens
from emulator.callers import EXTENSION_WRITERS, Caller, required_channel
from emulator.changes import Change, Commits
from emulator.clock import Clock
from emulator.config.environment import Environment
from emulator.engines.shapes import Documents, Key
from emulator.features.transactions.refusals import no_purchase
from emulator.features.transactions.rules import (
    LIFETIME,
    MAX_LISTED,
    STORED,
    Claim,
    Receipt,
    Transaction,
    TransactionBody,
    check_buyer,
    is_other_poster,
    is_same_claim,
    outstanding_key,
    receipt_of,
    stated_receipt,
    transaction_key,
    transaction_of,
    transaction_topic,
)
from emulator.ids import token_id as new_id
from emulator.kinds import Kind, Measured, Shape, Subject
from emulator.parity.service import OTHER_POSTER, RECEIPT, ProductionCheck, note
from emulator.realtime.publisher import Publisher
from emulator.wire import json_codec
from emulator.wire.refusals import wrong_shape

ANY: Final = "*"
TARGET: Final = "twitchPurchaseBits"
_PAGE: Final = 100


class Users(Protocol):
    """The directory of users."""

    async def names(self, caller: Caller) -> set[str]:
        """Return all ids under which a receipt may contain the caller."""

    async def aliases(self, client_id: str, users: Sequence[str]) -> Sequence[tuple[str, ...]]:
        """Return all ids of each distinct user."""


@dataclass(eq=False, repr=False)
class Transactions:
    """Purchases, outstanding until a game validates or refunds them. Methods raise `BadRequest` without a channel."""

    _documents: Documents
    _clock: Clock
    _tokens: Tokens
    _publisher: Publisher
    _environment: Environment
    _users: Users
    _commits: Commits

    async def record(self, caller: Caller, channel: str | None, body: TransactionBody) -> None:
        """Store a purchase and notify the channel's games; ignore a second post by the same user in the same channel.

        Production verifies the receipt and its buyer. Raises `BadRequest`.
        """
        channel_id = required_channel(channel, "a purchase")
        self._tokens.check_receipt(caller.client_id, body.transaction_receipt)
        now = self._clock.now()
        receipt, transaction = self._read(caller, body, now)
        if caller.role not in EXTENSION_WRITERS:
            await self._check_buyer(receipt, caller)
        poster = "" if self._environment.verifies_tokens else caller.opaque_id
        claim = Claim(channel_id, transaction.user_id, poster)
        key = transaction_key(caller.client_id, transaction.id)
        outstanding = outstanding_key(caller.client_id, channel_id, now, transaction.id)
        text = json_codec.encode(transaction)

        is_others = False

        def create(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            nonlocal is_others
            is_others = bool(claim.poster) and key in found and is_other_poster(found[key], claim)
            return {} if is_same_claim(found.get(key), claim) else {key: json_codec.encode(claim), outstanding: text}

        try:
            written = await self._documents.update([key, outstanding], create, now=now, expires_at=now + LIFETIME)
        finally:
            if is_others:
                note(OTHER_POSTER)
        if written:
            await self._commits.committed(Change(outstanding, "posted", caller.opaque_id, at=now))
            topic = transaction_topic(caller.client_id, channel_id, transaction.sku)
            await self._publisher.try_publish(topic, TARGET, transaction)

    def _read(self, caller: Caller, body: TransactionBody, now: int) -> tuple[Receipt, Transaction]:
        """Return the receipt and its purchase. The sandbox takes unreadable fields from the body (ruling T6)."""
        own_id = new_id()
        with ProductionCheck(RECEIPT, raises=self._environment.verifies_tokens):
            receipt = receipt_of(body.transaction_receipt)
            return receipt, transaction_of(receipt, body, own_id=own_id, now=now)
        receipt = stated_receipt(body, own_id=own_id, user_id=caller.user_id or caller.opaque_id)
        return receipt, transaction_of(receipt, body, own_id=own_id, now=now)

    async def _check_buyer(self, receipt: Receipt, caller: Caller) -> None:
        """Raise `BadRequest` unless the caller is the buyer. The sandbox only records it as production's verdict."""
        with ProductionCheck(RECEIPT, raises=self._environment.verifies_tokens):
            check_buyer(receipt, await self._users.names(caller))

    async def list_outstanding(self, caller: Caller, channel: str | None, sku: str) -> list[Transaction]:
        """Return up to 10 outstanding purchases of a product, or of all with `*`, oldest first."""
        listed: list[Transaction] = []
        async for _, transaction in self._outstanding(caller, required_channel(channel, "a purchase")):
            if sku in (ANY, transaction.sku):
                listed.append(transaction)
                if len(listed) == MAX_LISTED:
                    break
        return listed

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        """Count the outstanding purchases of a channel."""
        prefix, after, count = outstanding_key(caller.client_id, required_channel(channel, "a purchase")), "", 0
        now = self._clock.now()
        while suffixes := await self._documents.users(prefix, after=after, limit=_PAGE, now=now):
            count, after = count + len(suffixes), suffixes[-1]
        return Measured({"": count})

    async def settle(
        self, caller: Caller, channel: str | None, *, transaction_id: str = "", sku: str = "", user_id: str = ""
    ) -> None:
        """Remove the outstanding purchase with this id, or the user's oldest outstanding purchase of this product.

        Raises `NotFound`.
        The id may be the platform's transaction id or the id that this service assigned.
        """
        if not (transaction_id or (sku and user_id)):
            raise wrong_shape("data", needed="an object with transaction_id or muxy_id, or with sku and user_id")
        buyers = [] if transaction_id else await self._users.aliases(caller.client_id, [user_id])
        async for key, each in self._outstanding(caller, required_channel(channel, "a purchase")):
            is_users = any(each.sku == sku and each.user_id in ids for ids in buyers)
            is_meant = transaction_id in (each.id, each.own_id) if transaction_id else is_users
            if is_meant and await self._documents.drop([key], now=self._clock.now()):  # not settled since it was read
                await self._commits.committed(Change(key, "cleared", caller.opaque_id))
                return
        raise no_purchase()

    def topic(self, caller: Caller, channel: str | None, sku: str) -> Key:
        """Return the topic of a product's purchases in the channel; `*` means all products."""
        return transaction_topic(caller.client_id, required_channel(channel, "a purchase"), sku)

    async def _outstanding(self, caller: Caller, channel_id: str) -> AsyncIterator[tuple[Key, Transaction]]:
        prefix, after = outstanding_key(caller.client_id, channel_id), ""
        while True:
            now = self._clock.now()
            suffixes = await self._documents.users(prefix, after=after, limit=_PAGE, now=now)
            keys = [prefix._replace(user=suffix) for suffix in suffixes]
            found = await self._documents.read(keys, now=now)
            for key in keys:
                if key in found:
                    yield key, msgspec.json.decode(found[key], type=Transaction)
            if len(suffixes) < _PAGE:
                return
            after = suffixes[-1]


def _purchase_condition(value: bytes, now: int) -> dict[str, object]:
    bought = msgspec.json.decode(value, type=Transaction)
    return {"id": bought.id, "user": bought.user_id, "name": bought.sku, "size": UNSET}


PURCHASES: Final = Kind(
    "purchases",
    "the outstanding purchases, with buyer and product",
    ("outstanding",),
    Shape.DOCUMENTS,
    LIFETIME,
    "purchases",
    STORED,
    _purchase_condition,
    waits_for=Subject("purchase", "outstanding", frozenset({"count"}), ANY, is_named=False),
    measure=attrgetter("transactions.measure"),
)
