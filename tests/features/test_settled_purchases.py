"""Each purchase is settled once, also if several games or connections validate at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest

from emulator.core.callers import Caller, Role
from emulator.core.config.settings import Settings
from emulator.features.transactions.service import Transaction, TransactionBody
from engines.redis_server import RedisServer
from support.service import CHANNEL, CLIENT_ID, SECRET, LiveServer, live_server


@pytest.fixture
def redis_service(tmp_path: Path) -> Iterator[LiveServer]:
    """A service on Redis, where the operations of two calls can alternate."""
    with RedisServer(tmp_path) as server, live_server(Settings(data=server.url())) as live:
        yield live


@pytest.mark.slow
def test_two_simultaneous_validations_settle_two_purchases(redis_service: LiveServer):
    caller = Caller(CLIENT_ID, Role.ADMIN, CHANNEL, None, "A-admin")
    transactions = redis_service.service.transactions

    async def validate_twice() -> list[Transaction]:
        for transaction in ("t1", "t2"):
            data = {"transactionId": transaction, "userId": "5", "product": {"sku": "hat"}}
            receipt = jwt.encode({"topic": "bits_transaction_receipt", "data": data}, SECRET)
            await transactions.record(caller, CHANNEL, TransactionBody(receipt))
        await asyncio.gather(*(transactions.settle(caller, CHANNEL, sku="hat", user_id="5") for _ in range(2)))
        return await transactions.list_outstanding(caller, CHANNEL, "*")

    assert [] == redis_service.run(validate_twice())
