"""Purchases: pages post receipts, games follow and settle them."""

from __future__ import annotations

import secrets
from typing import Any

from extcli.api import tokens
from extcli.conform.calls import Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, rule, shown

SOURCE = "gaps: Purchases"


def post(at: Deployment, purchase: str, *, user: str = "") -> Reply:
    """Post a receipt for this purchase as the buyer, and return the response."""
    product = {"sku": "conform", "displayName": "A hat", "cost": {"amount": 5, "type": "bits"}}
    data = {"transactionId": purchase, "userId": user or at.user, "product": product}
    claims = {"topic": "bits_transaction_receipt", "exp": at.now() // 1000 + 600, "data": data}
    receipt = tokens.sign(claims, at.target.secret or secrets.token_bytes(32))
    return at.viewer.post("bits/transactions", {"transactionReceipt": receipt, "displayName": "Ann"})


def outstanding(game: Any) -> list[Any]:
    """Return the ids of the outstanding purchases of the game's channel."""
    return [each.get("id") for each in game.data("get", "transaction", {"sku": "conform"})["transactions"]]


@rule(SOURCE, "viewer", writes=True)
def malformed_receipt(at: Deployment) -> None:
    """A receipt that is not a text is refused with 400."""
    for receipt in (5, True, 1.5):  # the sandbox accepts any text (ruling T6)
        reply = at.viewer.post("bits/transactions", {"transactionReceipt": receipt})
        expect(f"the status of the receipt {shown(receipt)}", 400, reply.status)


@rule("T6", "viewer", "broadcaster", writes=True, mode="sandbox")
def receipt_of_any_text(at: Deployment) -> None:
    """The sandbox accepts any text as a receipt; the body says which purchase it is."""
    game = at.game()
    for receipt in ("", "a placeholder", "a.b.c"):
        stated = {"transactionId": at.fresh("purchase"), "userId": at.fresh("user"), "sku": "conform"}
        reply = at.viewer.post("bits/transactions", {"transactionReceipt": receipt, **stated})
        expect(f"the status of the receipt {shown(receipt)}", 201, reply.status)
        (found,) = game.data("get", "transaction", {"sku": "*"})["transactions"]
        seen = [found.get(name) for name in ("id", "userId", "sku")]
        expect(f"id, userId and sku of the purchase of the receipt {shown(receipt)}", list(stated.values()), seen)
        game.data("validate", "transaction", {"id": found["id"]})


@rule(SOURCE, "viewer", "broadcaster", writes=True, secret=True)
def purchase(at: Deployment) -> None:
    """A receipt is answered with 201 and notifies the channel's games once."""
    game, bought = at.game(), at.fresh("purchase")
    game.data("subscribe", "twitchPurchaseBits", {"sku": "*"})
    for _ in range(2):
        reply = post(at, bought)
        expect("status and body", [201, {}], [reply.status, reply.json])
    data = game.update("the update about a purchase").get("data", {})
    wanted = {"id": bought, "sku": "conform", "userId": at.user, "cost": 5, "currency": "bits"}
    expect("the update", wanted, {name: data.get(name) for name in wanted})
    expect("further updates", [], game.updates())
    game.data("validate", "transaction", {"id": bought})


@rule(SOURCE, "viewer", "broadcaster", writes=True, secret=True)
def settled_purchase(at: Deployment) -> None:
    """A purchase is outstanding until it is validated or refunded."""
    game = at.game()
    for action in ("validate", "refund"):
        bought = at.fresh("purchase")
        post(at, bought).check()
        expect("the outstanding purchases", [bought], outstanding(game))
        expect(f"the reply to {action}", {"ok": True}, game.data(action, "transaction", {"id": bought}))
        expect("the outstanding purchases afterwards", [], outstanding(game))
        expect(f"the status of another {action}", 404, game.error(action, "transaction", {"id": bought}).get("status"))
