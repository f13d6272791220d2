"""Purchases over REST (`bits/transactions`), and over the socket: updates on `twitchPurchaseBits`, and actions on
`transaction`.

A subscription to `transaction` gets the same updates, because clients use that target for all other requests.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from emulator.core.callers import ANYONE, CHANNEL_WRITERS
from emulator.core.keys import Key
from emulator.core.wire.refusals import missing_member
from emulator.features.transactions.service import TARGET, Transaction, TransactionBody, Transactions
from emulator.http.endpoint import CHANNEL, Call, Nothing, endpoint
from emulator.realtime.action import Done, Message, action, feed


@endpoint(
    "POST",
    "/v1/e/bits/transactions",
    roles=ANYONE,
    body=TransactionBody,
    query=(CHANNEL,),
    status=201,
    secrets=frozenset({"transactionReceipt"}),
)
async def record_transaction(transactions: Transactions, call: Call) -> Nothing:
    """Post the receipt of a purchase; the channel's games are notified once.

    A receipt is accepted from one user in one channel; posting it there again changes nothing. Production verifies its
    signature, and that a viewer or broadcaster is the buyer.
    """
    await transactions.record(call.caller, call.channel, call.body(TransactionBody))
    return Nothing()


endpoints: Final = (record_transaction,)


class SkuBody(Struct):
    """The product; `*` means all."""

    sku: str = ""


class SettleBody(Struct):
    """A purchase: by one of its ids, or the oldest of this user and product."""

    transaction_id: str = ""
    muxy_id: str = ""
    id: str = ""
    sku: str = ""
    user_id: str = ""


class Outstanding(Struct):
    """Purchases that are neither validated nor refunded, oldest first."""

    transactions: list[Transaction]


@action("get", "transaction", roles=CHANNEL_WRITERS)
async def list_transactions(transactions: Transactions, message: Message) -> Outstanding:
    """List up to 10 outstanding purchases of the channel."""
    return Outstanding(await transactions.list_outstanding(message.caller, message.channel, _sku(message)))


@action("validate", "transaction", roles=CHANNEL_WRITERS, aliases=(("refund", "transaction"),))
async def settle_transaction(transactions: Transactions, message: Message) -> Done:
    """Validate or refund a purchase, so that it is no longer outstanding. No money moves."""
    body = message.body(SettleBody)
    named = body.transaction_id or body.muxy_id or body.id
    await transactions.settle(message.caller, message.channel, transaction_id=named, sku=body.sku, user_id=body.user_id)
    return Done()


@feed(TARGET, "transaction", roles=CHANNEL_WRITERS)
async def transaction_topics(transactions: Transactions, message: Message) -> tuple[Key, ...]:
    """Follow the purchases of one product, or of all."""
    return (transactions.topic(message.caller, message.channel, _sku(message)),)


def _sku(message: Message) -> str:
    sku = message.body(SkuBody).sku
    if not sku:
        raise missing_member("data.sku", "name a product, or '*' for all")
    return sku


actions: Final = (list_transactions, settle_transaction)
feeds: Final = (transaction_topics,)
