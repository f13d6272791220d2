"""Purchases: a page posts a receipt, and the channel's games receive and settle it."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import jwt
import pytest

from support.service import CLIENT_ID, OTHER_SECRET, SECRET, Client, LiveServer, real_seconds
from support.socket_client import SocketClient, linked_game

DAY = 86_400_000


def receipt(transaction: str = "t1", sku: str = "hat", user: str = "5", key: bytes = SECRET, **claims: Any) -> str:
    product = {"sku": sku, "displayName": "A hat", "cost": {"amount": 50, "type": "bits"}}
    data = {"transactionId": transaction, "userId": user, "product": product}
    return jwt.encode({"topic": "bits_transaction_receipt", "data": data, **claims}, key)


def post(client: Client, token: str) -> httpx.Response:
    return client.post("bits/transactions", json={"transactionReceipt": token, "displayName": "Ann"})


def test_games_receive_the_purchases_of_the_products_they_follow(game: SocketClient, live: LiveServer, viewer):
    live.freeze()
    game.data("subscribe", "twitchPurchaseBits", {"sku": "*"})
    game.data("subscribe", "twitchPurchaseBits", {"sku": "hat"})

    assert (200, {}) == ((answer := post(viewer(), receipt())).status_code, answer.json())

    update = game.update()
    assert "twitchPurchaseBits" == update["meta"]["target"]
    own_id = update["data"].pop("muxy_id")
    assert {
        "id": "t1",
        "sku": "hat",
        "displayName": "A hat",
        "userId": "5",
        "username": "Ann",
        "currency": "bits",
        "cost": 50,
        "timestamp": live.now(),
    } == update["data"]
    assert own_id
    assert game.no_update()


def test_a_purchase_posted_twice_is_sent_once(game: SocketClient, viewer):
    game.data("subscribe", "twitchPurchaseBits", {"sku": "*"})

    answers = [post(viewer(), receipt()).status_code for _ in range(2)]

    assert [200, 200] == answers
    assert "t1" == game.update()["data"]["id"]
    assert game.no_update()


def test_followers_of_other_products_channels_and_extensions_receive_nothing(
    live: LiveServer, game: SocketClient, viewer
):
    with linked_game(live, "888") as elsewhere, linked_game(live, client_id="other-extension") as other:
        game.data("subscribe", "twitchPurchaseBits", {"sku": "sword"})
        for each in (elsewhere, other):
            each.data("subscribe", "twitchPurchaseBits", {"sku": "*"})

        post(viewer(), receipt())

        assert [True, True, True] == [each.no_update() for each in (game, elsewhere, other)]


def test_up_to_10_outstanding_purchases_are_listed_oldest_first(live: LiveServer, game: SocketClient, viewer):
    live.freeze()
    for number in range(12):
        post(viewer(), receipt(f"t{number}", sku="hat" if number % 2 else "sword"))
        live.advance(1)

    everything = game.data("get", "transaction", {"sku": "*"})["transactions"]
    hats = game.data("get", "transaction", {"sku": "hat"})["transactions"]

    assert [f"t{number}" for number in range(10)] == [each["id"] for each in everything]
    assert ["t1", "t3", "t5", "t7", "t9", "t11"] == [each["id"] for each in hats]


@pytest.mark.parametrize("action", ["validate", "refund"])
@pytest.mark.parametrize("which", [{"transaction_id": "t1"}, {"sku": "hat", "user_id": "5"}])
def test_a_settled_purchase_is_no_longer_outstanding(game: SocketClient, viewer, action: str, which: dict[str, str]):
    post(viewer(), receipt())
    post(viewer(), receipt("t2", user="6"))

    assert {"ok": True} == game.data(action, "transaction", which)

    assert ["t2"] == [each["id"] for each in game.data("get", "transaction", {"sku": "*"})["transactions"]]
    assert 404 == game.error(action, "transaction", which)["status"]


def test_a_settled_purchase_posted_again_stays_settled(game: SocketClient, viewer):
    post(viewer(), receipt())
    game.data("validate", "transaction", {"transaction_id": "t1"})

    post(viewer(), receipt())

    assert [] == game.data("get", "transaction", {"sku": "*"})["transactions"]


def test_a_viewer_may_not_follow_or_list_purchases(live: LiveServer, unlinked: SocketClient):
    token = jwt.encode({"role": "viewer", "channel_id": "777", "user_id": "5"}, SECRET)
    unlinked.data("authenticate", data={"client_id": CLIENT_ID, "jwt": token})

    statuses = [
        unlinked.error("get", "transaction", {"sku": "*"})["status"],
        unlinked.error("subscribe", "twitchPurchaseBits", {"sku": "*"})["status"],
    ]

    assert [403, 403] == statuses


def test_an_outstanding_purchase_expires_after_30_days(live: LiveServer, game: SocketClient, viewer):
    live.freeze()
    post(viewer(), receipt())

    live.advance(30 * DAY - 1)
    before = game.data("get", "transaction", {"sku": "*"})["transactions"]
    live.advance(1)

    assert (1, []) == (len(before), game.data("get", "transaction", {"sku": "*"})["transactions"])


def test_sandbox_accepts_a_forged_receipt_in_plain_padded_base64(viewer, game: SocketClient):
    payload = {"data": {"transactionId": "t?>~", "userId": "5", "product": {"sku": "hat", "cost": {"amount": "7"}}}}
    middle = base64.b64encode(json.dumps(payload).encode() + b" ").decode()
    forged = f"e30=.{middle}.AAAA"

    answer = post(viewer(), forged)

    assert (200, 7) == (answer.status_code, game.data("get", "transaction", {"sku": "*"})["transactions"][0]["cost"])


@pytest.mark.parametrize(
    "token",
    ["", "abc", "a.b.c", "e30.e30.x", jwt.encode({"data": {"transactionId": "", "userId": "5"}}, SECRET)],
)
def test_a_malformed_receipt_is_refused(viewer, token: str):
    answer = post(viewer(), token)

    assert (400, "Invalid receipt") == (answer.status_code, answer.json()["reason"])


def test_production_accepts_only_receipts_signed_with_the_extensions_secret(production: LiveServer):
    soon = real_seconds() + 600
    client = production.client("viewer", user="5", channel="777", exp=soon)

    answers = {
        "good": post(client, receipt("p1", exp=soon)),
        "forged": post(client, receipt("p2", key=OTHER_SECRET, exp=soon)),
        "expired": post(client, receipt("p3", exp=real_seconds() - 1)),
        "without exp": post(client, receipt("p4")),
    }

    statuses = {name: answer.status_code for name, answer in answers.items()}
    assert {"good": 200, "forged": 400, "expired": 400, "without exp": 400} == statuses
