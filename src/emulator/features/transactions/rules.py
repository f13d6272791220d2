"""What a page posts of a purchase, and what a game is told of it. Pure."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.clock import DAY
from emulator.engines.base import Key
from emulator.errors import BadRequest

LIFETIME: Final = 30 * DAY
"""How long a purchase waits to be validated or refunded, and is known for one already posted."""
MOST_LISTED: Final = 10
_LONGEST: Final = 256


class Cost(Struct):
    """What a product costs, and in what."""

    amount: int | str = 0
    type: str = "bits"


class Product(Struct, rename="camel"):
    """What was bought."""

    sku: str
    display_name: str = ""
    cost: Cost = msgspec.field(default_factory=Cost)


class ReceiptData(Struct, rename="camel"):
    """What a receipt proves."""

    transaction_id: str
    user_id: str
    product: Product


class Receipt(Struct):
    """The payload of a receipt, a JWT."""

    data: ReceiptData
    topic: str = ""


class TransactionBody(Struct, rename="camel"):
    """A purchase as a page posts it. The receipt says the rest."""

    transaction_receipt: str
    display_name: str = ""
    """The buyer's name."""


class Transaction(Struct, rename={"display_name": "displayName", "user_id": "userId", "own_id": "muxy_id"}):
    """A purchase as games know it."""

    id: str
    """The platform's."""
    own_id: str
    """This service's."""
    sku: str
    display_name: str
    """The product's name."""
    user_id: str
    username: str
    currency: str
    cost: int
    timestamp: int
    """When it was posted, in ms."""
    additional: Any | UnsetType = UNSET


def receipt_of(token: str) -> Receipt:
    """Read a receipt without checking who signed it; its parts may be in plain base64, padded."""
    parts = token.split(".")
    if len(parts) != 3:
        raise _bad("a receipt is a JWT of three parts")
    payload = parts[1].rstrip("=").translate(str.maketrans("+/", "-_"))
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=Receipt)
    except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError):
        raise _bad("its payload is not that of a receipt") from None


def transaction_of(receipt: Receipt, body: TransactionBody, *, own_id: str, now: int) -> Transaction:
    """The purchase that a receipt proves; raises `BadRequest` naming what does not fit."""
    data = receipt.data
    for name, text in (("transactionId", data.transaction_id), ("sku", data.product.sku), ("userId", data.user_id)):
        if not text or len(text) > _LONGEST or not text.isprintable():
            raise _bad(f"{name}: 1 to {_LONGEST} printable characters")
    try:
        cost = int(data.product.cost.amount)
    except ValueError:
        raise _bad("product.cost.amount: must be an integer") from None
    return Transaction(
        data.transaction_id,
        own_id,
        data.product.sku,
        data.product.display_name,
        data.user_id,
        body.display_name,
        data.product.cost.type,
        cost,
        now,
    )


def transaction_key(client_id: str, channel_id: str, transaction_id: str) -> Key:
    """Where a purchase is kept."""
    return Key("transaction", client_id, transaction_id, channel_id)


def outstanding_key(client_id: str, channel_id: str, at: int = 0, transaction_id: str = "") -> Key:
    """Where it is kept that a purchase is neither validated nor refunded; holders are in order of time."""
    return Key("outstanding", client_id, "", channel_id, f"{at:016d}/{transaction_id}" if transaction_id else "")


def transaction_topic(client_id: str, channel_id: str, sku: str) -> Key:
    """What subscribers of a product's purchases follow; `*` for all products."""
    return Key("purchase", client_id, sku, channel_id)


def _bad(why: str) -> BadRequest:
    return BadRequest("Invalid receipt", f"transactionReceipt: {why}")
