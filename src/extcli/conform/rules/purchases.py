"""Purchases: pages post receipts, games follow and settle them."""

from __future__ import annotations

import secrets
from typing import Any

from extcli.api import tokens
from extcli.conform.calls import Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, expect_members, shown, writes

SOURCE = "gaps: Purchases"


def post_receipt(at: Deployment, purchase: str) -> Reply:
    """Post a receipt for this purchase as the buyer, and return the response."""
    product = {"sku": "conform", "displayName": "A hat", "cost": {"amount": 5, "type": "bits"}}
    data = {"transactionId": purchase, "userId": at.user, "product": product}
    claims = {"topic": "bits_transaction_receipt", "exp": at.target.now() // 1000 + 600, "data": data}
    receipt = tokens.sign(claims, at.target.secret or secrets.token_bytes(32))
    return at.viewer.post("bits/transactions", {"transactionReceipt": receipt, "displayName": "Ann"}, status=201)


def outstanding_ids(game: Any) -> list[Any]:
    """Return the ids of the outstanding purchases of the game's channel."""
    return [each["id"] for each in game.data("get", "transaction", {"sku": "conform"})["transactions"]]


@writes(SOURCE)
def malformed_receipt(at: Deployment) -> None:
    """A receipt that is not a text is refused with 400."""
    # The sandbox accepts any text (ruling T6).
    at.viewer.refuses("bits/transactions", *({"transactionReceipt": receipt} for receipt in (5, True, 1.5)))


@writes("T6", "sandbox")
def receipt_of_any_text(at: Deployment) -> None:
    """The sandbox accepts any text as a receipt; the body says which purchase it is."""
    game = at.game()
    for receipt in ("", "a placeholder", "a.b.c"):
        stated = {"transactionId": at.fresh("purchase"), "userId": at.fresh("user"), "sku": "conform"}
        at.viewer.post("bits/transactions", {"transactionReceipt": receipt, **stated}, status=201)
        (found,) = game.data("get", "transaction", {"sku": "*"})["transactions"]
        wanted = {"id": stated["transactionId"], "userId": stated["userId"], "sku": "conform"}
        expect_members(wanted, found, f"of the purchase of the receipt {shown(receipt)}")
        game.data("validate", "transaction", {"id": found["id"]})


@writes(SOURCE, "secret")
def purchase(at: Deployment) -> None:
    """A receipt is answered with 201 and notifies the channel's games once."""
    game, bought = at.game(), at.fresh("purchase")
    game.data("subscribe", "twitchPurchaseBits", {"sku": "*"})
    for _ in range(2):
        post_receipt(at, bought).returns({})
    (found,) = game.next_updates(1)
    wanted = {"id": bought, "sku": "conform", "userId": at.user, "cost": 5, "currency": "bits"}
    expect_members(wanted, found["data"], "of the update")
    game.data("validate", "transaction", {"id": bought})


@writes(SOURCE, "secret")
def settled_purchase(at: Deployment) -> None:
    """A purchase is outstanding until it is validated or refunded."""
    game = at.game()
    for action in ("validate", "refund"):
        bought = at.fresh("purchase")
        post_receipt(at, bought)
        expect("the outstanding purchases", [bought], outstanding_ids(game))
        expect(f"the reply to {action}", {"ok": True}, game.data(action, "transaction", {"id": bought}))
        expect("the outstanding purchases afterwards", [], outstanding_ids(game))
        game.refuses(404, action, "transaction", {"id": bought}, case=f"of another {action}")
