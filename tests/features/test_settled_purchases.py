"""Each purchase is settled once, also if several games or connections validate at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest

from emulator.core.config.settings import Settings
from engines.redis_server import RedisServer
from support.service import CHANNEL, SECRET, LiveServer, live_server
from support.socket_client import linked_game


@pytest.fixture
def redis_service(tmp_path: Path) -> Iterator[LiveServer]:
    """A service on Redis, where the operations of two calls can alternate."""
    with RedisServer(tmp_path) as server, live_server(Settings(data=server.url())) as live:
        yield live


@pytest.mark.slow
def test_two_simultaneous_validations_settle_two_purchases(redis_service: LiveServer):
    for transaction in ("t1", "t2"):
        data = {"transactionId": transaction, "userId": "5", "product": {"sku": "hat"}}
        receipt = jwt.encode({"topic": "bits_transaction_receipt", "data": data}, SECRET)
        answer = redis_service.client("viewer", user="5", channel=CHANNEL).post(
            "bits/transactions", json={"transactionReceipt": receipt}
        )
        assert 201 == answer.status_code, answer.text
    with linked_game(redis_service) as one, linked_game(redis_service) as other:
        for game in (one, other):
            game.send("validate", "transaction", {"sku": "hat", "user_id": "5"})

        assert [{"ok": True}] * 2 == [game.reply()["data"] for game in (one, other)]
        assert {"transactions": []} == one.data("get", "transaction", {"sku": "*"})
