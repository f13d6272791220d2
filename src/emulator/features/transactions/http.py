"""Purchases over REST: `bits/transactions`."""

from __future__ import annotations

from typing import Final

from emulator.callers import ANYONE
from emulator.features.transactions.rules import TransactionBody
from emulator.features.transactions.service import Transactions
from emulator.web.call import Call
from emulator.web.endpoint import Nothing, Parameter, endpoint

_CHANNEL = Parameter("channel_id", "The channel, for roles admin and backend.")


@endpoint("POST", "/v1/e/bits/transactions", roles=ANYONE, body=TransactionBody, query=(_CHANNEL,))
async def record_transaction(transactions: Transactions, call: Call) -> Nothing:
    """Post the receipt of a purchase; the channel's games are notified once.

    Sandbox does not verify the receipt's signature.
    """
    await transactions.record(call.caller, call.channel, call.body(TransactionBody))
    return Nothing()


endpoints: Final = (record_transaction,)
