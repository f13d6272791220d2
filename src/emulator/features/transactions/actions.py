"""Purchases over the socket: the feed `twitchPurchaseBits`, and `transaction`."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from emulator.callers import CHANNEL_WRITERS
from emulator.engines.base import Key
from emulator.errors import BadRequest
from emulator.features.transactions.rules import Transaction
from emulator.features.transactions.service import TARGET, Transactions
from emulator.realtime.action import Message, action, feed
from emulator.realtime.gateway import Done


class SkuBody(Struct):
    """Which product, `*` for all."""

    sku: str = ""


class SettleBody(Struct):
    """Which purchase: by its id, or the oldest of a user and product."""

    transaction_id: str = ""
    sku: str = ""
    user_id: str = ""


class Outstanding(Struct):
    """Purchases that wait to be validated or refunded, oldest first."""

    transactions: list[Transaction]


@action("get", "transaction", roles=CHANNEL_WRITERS)
async def list_transactions(transactions: Transactions, message: Message) -> Outstanding:
    """List the channel's outstanding purchases, at most 10."""
    return Outstanding(await transactions.list_outstanding(message.caller, message.channel, _sku(message)))


@action("validate", "transaction", roles=CHANNEL_WRITERS, aliases=(("refund", "transaction"),))
async def settle_transaction(transactions: Transactions, message: Message) -> Done:
    """Validate or refund a purchase, which then is outstanding no more. No money moves here."""
    body = message.body(SettleBody)
    await transactions.settle(
        message.caller, message.channel, transaction_id=body.transaction_id, sku=body.sku, user_id=body.user_id
    )
    return Done()


@feed(TARGET, roles=CHANNEL_WRITERS)
async def transaction_topics(transactions: Transactions, message: Message) -> tuple[Key, ...]:
    """The purchases of one product, or of all."""
    return (transactions.topic(message.caller, message.channel, _sku(message)),)


def _sku(message: Message) -> str:
    sku = message.body(SkuBody).sku
    if not sku:
        raise BadRequest("Invalid body", "data.sku: names no product; '*' is all of them")
    return sku


actions: Final = (list_transactions, settle_transaction)
feeds: Final = (transaction_topics,)
