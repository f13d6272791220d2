"""Purchases: pages post receipts, games follow and settle them.

Games follow them as `twitchPurchaseBits`, or as `transaction`, the target of all their other requests.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from emulator.auth.tokens import Tokens
from emulator.core.callers import ANYONE, CHANNEL_WRITERS, EXTENSION_WRITERS, Caller, required_channel
from emulator.core.changes import Change, Changes
from emulator.core.clock import DAY, Clock
from emulator.core.environment import Environment
from emulator.core.errors import BadRequest, Facts, NotFound, refusal
from emulator.core.ids import token_id as new_id
from emulator.core.keys import Key
from emulator.core.parity import OTHERS_PURCHASE, RECEIPT, ProductionCheck, set_verdict
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import missing_member, wrong_shape
from emulator.features.directory import Directory
from emulator.features.kinds import Kind, Measured, Subject
from emulator.http.endpoint import CHANNEL, Call, Nothing, endpoint
from emulator.realtime.action import Done, Message, action, feed
from emulator.realtime.publisher import Publisher
from emulator.storage.kinds import Stored, decode_check
from emulator.storage.records import DocumentRecord
from emulator.storage.shapes import Documents, Texts, document_pages

_RULE = "gaps: Purchases"
_INVALID_RECEIPT = (BadRequest, "Invalid receipt", _RULE)


@refusal(*_INVALID_RECEIPT, "The receipt is malformed",
         "Post a receipt as Twitch makes it: `extcli bits purchase SKU` makes one.")  # fmt: skip
def malformed_receipt(*, problem: str) -> Facts:
    return Facts(f"transactionReceipt: {problem}", problem, "a receipt as Twitch makes it")


@refusal(*_INVALID_RECEIPT, "The receipt belongs to another buyer", "Post the receipt with the buyer's own token.")
def other_buyer() -> Facts:
    detail = "transactionReceipt: userId is not the user of the token"
    return Facts(detail, "a token of another user", "the buyer's token")


@refusal(*_INVALID_RECEIPT, "The purchase was posted before", "Post a receipt only as its buyer, and in one channel.")
def posted_before() -> Facts:
    detail = "transactionReceipt: its transaction was posted before, in another channel or by another user"
    held = "a transaction id that another user or channel has posted"
    return Facts(detail, held, "a transaction id of this user and channel")


@refusal(NotFound, "Not Found", _RULE, "No purchase matches", "List the outstanding purchases: `extcli bits list`.")
def no_purchase() -> Facts:
    held, needed = "a purchase that is not outstanding", "a purchase that is neither validated nor refunded"
    return Facts("no outstanding transaction matches", held, needed)


LIFETIME = 30 * DAY
"""How long a purchase stays outstanding, and a second receipt for it is ignored, in ms."""
MAX_LISTED = 10
UNKNOWN_PRODUCT = "unknown"
"""The product of a purchase that names none."""
_MAX_TEXT_LENGTH = 256
_AMOUNT_PATTERN = re.compile("[0-9]{1,16}")


class Cost(Struct):
    """The price of a product, and its currency in `type`."""

    amount: int | str = 0
    type: str = "bits"


class Product(Struct, rename="camel"):
    """The product of a purchase."""

    sku: str
    display_name: str = ""
    cost: Cost = msgspec.field(default_factory=Cost)


class ReceiptData(Struct, rename="camel"):
    """The purchase in a receipt."""

    transaction_id: str
    user_id: str
    product: Product


class Receipt(Struct):
    """The payload of a receipt, which is a JWT."""

    data: ReceiptData
    topic: str = ""


class TransactionBody(Struct, rename="camel"):
    """A purchase as a page posts it."""

    transaction_receipt: str
    display_name: str = ""
    """The buyer's name."""
    transaction_id: str = ""
    user_id: str = ""
    sku: str = ""
    """Empty if the receipt cannot be read; the sandbox accepts any text (ruling T6)."""


class Claim(Struct):
    """The channel and user of the first post of a purchase; no other may post it."""

    channel_id: str
    user_id: str
    """The buyer in the receipt."""
    poster: str
    """The opaque id of the caller, in the sandbox; empty in production, which checks that the caller is the buyer."""


class Transaction(Struct, rename={"display_name": "displayName", "user_id": "userId", "own_id": "muxy_id"}):
    """A purchase as games receive it."""

    id: str
    """Twitch's id."""
    own_id: str
    """This service's id."""
    sku: str
    display_name: str
    """The product's name."""
    user_id: str
    username: str
    currency: str
    cost: int
    timestamp: int
    """When the receipt was posted, in Unix ms."""
    additional: Any | UnsetType = UNSET


def decode_receipt(token: str) -> ReceiptData:
    """Decode a receipt without verifying it. Plain and padded base64 are accepted. Raises `BadRequest`."""
    parts = token.split(".")
    if len(parts) != 3:
        raise malformed_receipt(problem="a receipt must be a JWT with three parts")
    payload = parts[1].rstrip("=").translate(str.maketrans("+/", "-_"))
    padding = "=" * (-len(payload) % 4)
    try:
        text = base64.urlsafe_b64decode(payload + padding)
        return msgspec.json.decode(text, type=Receipt).data
    except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError):
        raise malformed_receipt(problem="the payload of the JWT is not a receipt") from None


def purchase_in_receipt(data: ReceiptData, body: TransactionBody, *, own_id: str, now: int) -> Transaction:
    """Return the purchase in a receipt. Raises `BadRequest` naming a malformed field."""
    texts = {"transactionId": data.transaction_id, "sku": data.product.sku, "userId": data.user_id}
    for name, text in texts.items():
        if not 1 <= len(text) <= _MAX_TEXT_LENGTH or not text.isprintable():
            raise malformed_receipt(problem=f"{name}: must be 1 to {_MAX_TEXT_LENGTH} printable characters")
    amount = data.product.cost.amount
    if isinstance(amount, str):
        amount = int(amount) if _AMOUNT_PATTERN.fullmatch(amount) else -1
    if not 0 <= amount < 2**53:
        raise malformed_receipt(problem="product.cost.amount must be an integer from 0 to 2^53 - 1")
    return Transaction(
        data.transaction_id,
        own_id,
        data.product.sku,
        data.product.display_name,
        data.user_id,
        body.display_name,
        data.product.cost.type,
        amount,
        now,
    )


ALL_PRODUCTS = "*"
PURCHASE_TARGET = "twitchPurchaseBits"


class SkuBody(Struct):
    """A product; `*` means all products."""

    sku: str = ""


class SettleBody(Struct):
    """A purchase: by one of its ids, or the oldest of this user and product."""

    transaction_id: str = ""
    """Twitch's id, or this service's; so may `muxy_id` and `id`."""
    muxy_id: str = ""
    id: str = ""
    sku: str = ""
    user_id: str = ""


class Outstanding(Struct):
    """Purchases that are neither validated nor refunded, oldest first."""

    transactions: list[Transaction]


def _requested_sku(message: Message) -> str:
    sku = message.body(SkuBody).sku
    if not sku:
        raise missing_member("data.sku", "name a product, or '*' for all products")
    return sku


@dataclass(eq=False, repr=False)
class Transactions:
    """Purchases, outstanding until a game validates or refunds them. Methods raise `BadRequest` without a channel."""

    _documents: Documents
    _clock: Clock
    _tokens: Tokens
    _publisher: Publisher
    _environment: Environment
    _directory: Directory
    _changes: Changes

    @endpoint(
        "POST",
        "/v1/e/bits/transactions",
        roles=ANYONE,
        body=TransactionBody,
        query=(CHANNEL,),
        status=201,
        secrets=frozenset({"transactionReceipt"}),
    )
    async def record_transaction(self, call: Call) -> Nothing:
        """Post the receipt of a purchase; the channel's games are notified once.

        A receipt is accepted from one user in one channel; posting it there again changes nothing. Production verifies
        its signature, and that a viewer or broadcaster is the buyer.
        """
        caller, channel, body = call.caller, call.channel, call.body(TransactionBody)
        channel_id = required_channel(channel, "a purchase")
        self._tokens.check_receipt(caller.client_id, body.transaction_receipt)
        now = self._clock.now()
        transaction = self._read_purchase(caller, body, now)
        if caller.role not in EXTENSION_WRITERS:
            await self._check_buyer(transaction.user_id, caller)
        poster = "" if self._environment.is_strict else caller.opaque_id
        claim = Claim(channel_id, transaction.user_id, poster)
        key = Key("transaction", caller.client_id, transaction.id)  # all channels share it
        # The keys of outstanding purchases sort by time.
        outstanding = Key("outstanding", caller.client_id, "", channel_id, f"{now:016d}/{transaction.id}")
        first: Claim | None  # the next function sets it

        def create(found: Texts) -> Texts:
            nonlocal first
            first = msgspec.json.decode(found[key], type=Claim) if key in found else None
            return {} if first else {key: json_codec.encode(claim), outstanding: json_codec.encode(transaction)}

        await self._documents.update([key, outstanding], create, now=now, expires_at=now + LIFETIME)
        if first is None:
            await self._changes.committed(Change(outstanding, "posted", caller.opaque_id, at=now))
            await self._publisher.try_publish(_topic(caller, channel, transaction.sku), PURCHASE_TARGET, transaction)
        elif first != claim:
            if replace(first, poster=poster) == claim:  # production does not compare the poster
                set_verdict(OTHERS_PURCHASE)
            raise posted_before()
        return Nothing()

    def _read_purchase(self, caller: Caller, body: TransactionBody, now: int) -> Transaction:
        """Return the purchase in a receipt. The sandbox takes unreadable fields from the body (ruling T6)."""
        own_id = new_id()
        with ProductionCheck(RECEIPT, raises=self._environment.is_strict):
            return purchase_in_receipt(decode_receipt(body.transaction_receipt), body, own_id=own_id, now=now)
        stated = ReceiptData(
            transaction_id=body.transaction_id or own_id,
            user_id=body.user_id or caller.user_id or caller.opaque_id,
            product=Product(body.sku or UNKNOWN_PRODUCT),
        )
        return purchase_in_receipt(stated, body, own_id=own_id, now=now)

    async def _check_buyer(self, user_id: str, caller: Caller) -> None:
        """Raise `BadRequest` unless the caller is the buyer. The sandbox only records it as production's verdict."""
        with ProductionCheck(RECEIPT, raises=self._environment.is_strict):
            buyer = user_id.removeprefix("U")
            if (await self._directory.ids_of_caller(caller)).isdisjoint({buyer, f"U{buyer}"}):
                raise other_buyer()

    @action("get", "transaction", roles=CHANNEL_WRITERS)
    async def list_outstanding(self, message: Message) -> Outstanding:
        """List up to 10 outstanding purchases of the channel."""
        sku, listed = _requested_sku(message), Outstanding([])
        async for _, transaction in self._find_outstanding(message.caller, message.channel):
            if sku in (ALL_PRODUCTS, transaction.sku):
                listed.transactions.append(transaction)
                if len(listed.transactions) == MAX_LISTED:
                    break
        return listed

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        """Count the outstanding purchases of a channel."""
        return Measured({"": len([key async for key, _ in self._find_outstanding(caller, channel)])})

    @action("validate", "transaction", roles=CHANNEL_WRITERS, aliases=(("refund", "transaction"),))
    async def settle(self, message: Message) -> Done:
        """Validate or refund a purchase, so that it is no longer outstanding. No money moves."""
        caller, body = message.caller, message.body(SettleBody)
        named = body.transaction_id or body.muxy_id or body.id
        if not (named or (body.sku and body.user_id)):
            raise wrong_shape("data", needed="an object with transaction_id or muxy_id, or with sku and user_id")
        buyer: tuple[str, ...] = ()
        if not named:
            (buyer,) = await self._directory.aliases(caller.client_id, [body.user_id])
        async for key, each in self._find_outstanding(caller, message.channel):
            is_buyers = each.sku == body.sku and each.user_id in buyer
            is_meant = named in (each.id, each.own_id) if named else is_buyers
            if is_meant and await self._documents.drop([key], now=self._clock.now()):  # not settled since it was read
                await self._changes.committed(Change(key, "cleared", caller.opaque_id))
                return Done()
        raise no_purchase()

    @feed(PURCHASE_TARGET, "transaction", roles=CHANNEL_WRITERS)
    async def transaction_topics(self, message: Message) -> tuple[Key, ...]:
        """Follow the purchases of one product, or of all products."""
        return (_topic(message.caller, message.channel, _requested_sku(message)),)

    async def _find_outstanding(self, caller: Caller, channel: str | None) -> AsyncIterator[tuple[Key, Transaction]]:
        group = Key("outstanding", caller.client_id, "", required_channel(channel, "a purchase"))
        async for page in document_pages(self._documents, group, now=self._clock.now()):
            for key, text in page.items():
                yield key, msgspec.json.decode(text, type=Transaction)


def _topic(caller: Caller, channel: str | None, sku: str) -> Key:
    """Return the topic of a product's purchases in the channel; `*` means all products."""
    return Key("purchase", caller.client_id, sku, required_channel(channel, "a purchase"))


def _purchase_facts(value: bytes, now: int) -> dict[str, object]:
    bought = msgspec.json.decode(value, type=Transaction)
    return {"id": bought.id, "user": bought.user_id, "name": bought.sku, "size": UNSET}


PURCHASES = Kind(
    "purchases",
    "the outstanding purchases, with buyer and product",
    ("outstanding",),
    LIFETIME,
    (
        Stored(DocumentRecord, "outstanding", decode_check(Transaction)),
        Stored(DocumentRecord, "transaction", decode_check(Claim), has_secret_name=True),
    ),
    _purchase_facts,
    waits_for=Subject("purchase", "outstanding", frozenset({"count"}), ALL_PRODUCTS, is_named=False),
)
