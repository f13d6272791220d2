"""Purchases over REST: `bits/transactions`."""

from __future__ import annotations

from typing import Final

from emulator.callers import ANYONE
from emulator.features.transactions.rules import TransactionBody
from emulator.features.transactions.service import Transactions
from emulator.http.endpoint import CHANNEL, Call, Nothing, endpoint


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
