"""Purchases in production, unreadable prices, and races (ruling T6). `tests/surface/games.py` models the rest."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from emulator.core.settings import Settings
from engines.redis_server import RedisServer
from support.service import CHANNEL, OTHER_SECRET, SECRET, Client, LiveServer, live_server, real_seconds
from support.signing import signed
from support.socket_client import SocketClient, linked_game


def receipt(transaction: str = "t1", sku: str = "hat", user: str = "5", key: bytes = SECRET, **claims: Any) -> str:
    product = {"sku": sku, "displayName": "A hat", "cost": {"amount": 50, "type": "bits"}}
    data = {"transactionId": transaction, "userId": user, "product": product}
    return jwt.encode({"topic": "bits_transaction_receipt", "data": data, **claims}, key)


def post(client: Client, token: str) -> httpx.Response:
    return client.post("bits/transactions", json={"transactionReceipt": token, "displayName": "Ann"})


def test_production_accepts_only_receipts_signed_with_the_extensions_secret(production: LiveServer):
    soon = real_seconds() + 600
    client = production.client("viewer", user="5", channel="777", exp=soon)

    tokens = {
        "good": receipt("p1", exp=soon),
        "forged": receipt("p2", key=OTHER_SECRET, exp=soon),
        "signed by the service": receipt("p3", key=production.service.tokens._service_key.value.encode(), exp=soon),
        "expired": receipt("p4", exp=real_seconds() - 1),
        "unreadable": jwt.encode({"data": {"transactionId": "", "userId": "5"}, "exp": soon}, SECRET),
    }

    statuses = {name: post(client, token).status_code for name, token in tokens.items()}
    assert {**dict.fromkeys(tokens, 400), "good": 201} == statuses


@pytest.mark.parametrize("which", [{}, {"muxy_id": ""}, {"sku": "hat"}])
def test_a_purchase_to_settle_must_be_named(game: SocketClient, viewer, which: dict[str, Any]):
    post(viewer(), receipt())

    assert 400 == game.error("validate", "transaction", which)["status"]


def test_simultaneous_posts_of_one_receipt_are_accepted_in_one_channel(live: LiveServer, viewer):
    channels = [str(number) for number in range(20)]
    clients = [viewer("5", channel=channel) for channel in channels]

    with ThreadPoolExecutor(len(clients)) as pool:
        statuses = list(pool.map(lambda client: post(client, receipt()).status_code, clients))

    assert {201: 1, 400: 19} == Counter(statuses)


@pytest.mark.parametrize("amount", [-1, 2**53, int("9" * 4_300), "1_0", "٣", 1.5, True])
def test_a_price_that_is_not_an_amount_counts_as_unreadable(viewer, game: SocketClient, amount: object):
    product = {"sku": "hat", "cost": {"amount": amount}}
    payload = {"data": {"transactionId": "t1", "userId": "5", "product": product}}
    middle = base64.urlsafe_b64encode(json.dumps(payload).encode()).decode()

    answer = post(viewer(), f"e30.{middle}.x")

    (listed,) = game.data("get", "transaction", {"sku": "*"})["transactions"]
    assert (201, "unknown", 0) == (answer.status_code, listed["sku"], listed["cost"])


@pytest.fixture
def buyer(production: LiveServer) -> Callable[..., Client]:
    """`buyer("5")` is that user in channel 777 of the production service."""
    return lambda user="5", role="viewer", **claims: production.client(
        role, user=user, **{"channel": "777", "exp": real_seconds() + 600} | claims
    )


def test_in_production_the_buyer_must_be_the_caller(buyer):
    soon = real_seconds() + 600
    callers = [
        *((buyer("5"), 201), (buyer(None, opaque="U5"), 201), (buyer("5", "broadcaster"), 201)),
        *((buyer("6"), 400), (buyer(None, opaque="A5"), 400), (buyer("777", "broadcaster"), 400)),
        (buyer(None, "backend"), 201),
    ]

    for number, (caller, status) in enumerate(callers):
        assert status == post(caller, receipt(f"q{number}", exp=soon)).status_code
        assert 201 == post(buyer("5"), receipt(f"q{number}", exp=soon)).status_code, "it stays good for the buyer"


def test_in_production_a_known_buyer_may_post_under_their_opaque_id(buyer):
    token = receipt("v1", user="5150", exp=real_seconds() + 600)
    hidden, shared = buyer(None, opaque="Uopaque"), buyer("5150", opaque="Uopaque")
    before = post(hidden, token).status_code
    shared.post("vote", json={"value": 1}).raise_for_status()

    assert [400, 201] == [before, post(hidden, token).status_code]


@pytest.mark.parametrize("exp", [None, 2_000_000_000_000, True, "soon"])
def test_in_production_a_receipt_needs_an_exp_in_seconds(buyer, exp: object):
    product = {"sku": "hat", "cost": {"amount": 1}}
    payload = {"exp": exp, "data": {"transactionId": "u1", "userId": "5", "product": product}}

    assert 400 == post(buyer("5"), signed({"alg": "HS256"}, payload)).status_code


def test_up_to_10_purchases_are_listed_of_more_than_100(live: LiveServer, game: SocketClient, viewer):
    live.freeze()
    buyer = viewer()
    for number in range(101):
        post(buyer, receipt(f"t{number:03d}", sku="sword" if number < 100 else "hat")).raise_for_status()

    listed = {sku: game.data("get", "transaction", {"sku": sku})["transactions"] for sku in ("*", "hat")}

    assert [f"t{number:03d}" for number in range(10)] == [each["id"] for each in listed["*"]]
    assert ["t100"] == [each["id"] for each in listed["hat"]]


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
