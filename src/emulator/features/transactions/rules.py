"""Receipts that pages post, and purchases as games receive them. No I/O."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Set
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.clock import DAY
from emulator.engines.records import DocumentRecord
from emulator.engines.shapes import Key
from emulator.features.transactions.refusals import malformed_receipt, other_buyer, posted_before
from emulator.stored import Stored, decode_check

LIFETIME: Final = 30 * DAY
"""How long a purchase stays outstanding, and a second receipt for it is ignored, in ms."""
MAX_LISTED: Final = 10
UNKNOWN: Final = "unknown"
"""The product of a purchase that names none."""
_MAX_LENGTH: Final = 256
_AMOUNT: Final = re.compile("[0-9]{1,16}")


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
    """The platform's id."""
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


def receipt_of(token: str) -> Receipt:
    """Decode a receipt without verifying it. Plain and padded base64 are accepted. Raises `BadRequest`."""
    parts = token.split(".")
    if len(parts) != 3:
        raise malformed_receipt(problem="a receipt must be a JWT with three parts")
    payload = parts[1].rstrip("=").translate(str.maketrans("+/", "-_"))
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=Receipt)
    except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError):
        raise malformed_receipt(problem="the payload does not belong to a receipt") from None


def stated_receipt(body: TransactionBody, *, own_id: str, user_id: str) -> Receipt:
    """Return the purchase that a body describes, in place of a receipt that cannot be read (ruling T6)."""
    product = Product(body.sku or UNKNOWN, cost=Cost(0))
    return Receipt(ReceiptData(body.transaction_id or own_id, body.user_id or user_id, product))


def transaction_of(receipt: Receipt, body: TransactionBody, *, own_id: str, now: int) -> Transaction:
    """Return the purchase in a receipt. Raises `BadRequest` naming a malformed field."""
    data = receipt.data
    for name, text in (("transactionId", data.transaction_id), ("sku", data.product.sku), ("userId", data.user_id)):
        if not 1 <= len(text) <= _MAX_LENGTH or not text.isprintable():
            raise malformed_receipt(problem=f"{name}: must be 1 to {_MAX_LENGTH} printable characters")
    amount = data.product.cost.amount
    if isinstance(amount, str):
        amount = int(amount) if _AMOUNT.fullmatch(amount) else -1
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


def is_same_claim(found: bytes | None, claim: Claim) -> bool:
    """Return whether the same user has posted the purchase in the same channel before.

    Raises `BadRequest` if another user or channel has.
    """
    if found is None:
        return False
    if msgspec.json.decode(found, type=Claim) != claim:
        raise posted_before()
    return True


def is_other_poster(found: bytes, claim: Claim) -> bool:
    """Return whether a second post of a purchase differs from the first only in the user.

    Production does not compare users.
    """
    first = msgspec.json.decode(found, type=Claim)
    return first.poster != claim.poster and (first.channel_id, first.user_id) == (claim.channel_id, claim.user_id)


def check_buyer(receipt: Receipt, names: Set[str]) -> None:
    """Raise `BadRequest` unless the buyer is a user with these names."""
    buyer = receipt.data.user_id.removeprefix("U")
    if names.isdisjoint({buyer, f"U{buyer}"}):
        raise other_buyer()


def transaction_key(client_id: str, transaction_id: str) -> Key:
    """Return the key of the claim of a purchase, which all channels share."""
    return Key("transaction", client_id, transaction_id)


def outstanding_key(client_id: str, channel_id: str, at: int = 0, transaction_id: str = "") -> Key:
    """Return the key of an outstanding purchase; without an id, the key prefix of all.

    Keys sort by time (`at`, in ms).
    """
    return Key("outstanding", client_id, "", channel_id, f"{at:016d}/{transaction_id}" if transaction_id else "")


def transaction_topic(client_id: str, channel_id: str, sku: str) -> Key:
    """Return the topic of a product's purchases; `*` means all products."""
    return Key("purchase", client_id, sku, channel_id)


STORED: Final = (
    Stored(DocumentRecord, "transaction", decode_check(Claim)),
    Stored(DocumentRecord, "outstanding", decode_check(Transaction)),
)
