"""`extcli bits`: purchases, from the page that posts a receipt to the game that settles it."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from extcli.cli import argument, command, noun, option
from extcli.errors import UsageError
from extcli.output import times, views
from extcli.output.columns import Column, listing, thousands
from extcli.output.sanitize import visible
from extcli.reading import Json, read_source
from extcli.session import VIEWER, Session

app = noun("Purchases: a page posts a receipt, and the channel's games list, validate or refund the purchase.")

_RECEIPT_LIFETIME = 15 * 60
"""Seconds until a receipt of `bits purchase` expires."""

Purchase = Annotated[str | None, argument("ID", "The purchase's id, as `bits list` shows it.")]
Sku = Annotated[str | None, option("--sku SKU", "The product's SKU. Use --sku and --user instead of ID.")]
User = Annotated[str | None, option("--user ID", "The buyer's id. Selects the buyer's oldest purchase of the product.")]

PURCHASES = listing(
    "transactions",
    Column("", "timestamp", "posted (UTC)", times.utc_text),
    Column("id"),
    Column("sku", heading="product"),
    Column("cost", right=True, text=thousands),
    Column("currency", heading=""),
    Column("user", "userId", "buyer"),
    Column("posted", "timestamp", in_table=False),
    else_shown="no outstanding purchases",
)


@command(app)
def purchase(
    session: Session,
    sku: str | None = argument("SKU", "The product.", None),
    cost: int = option("--cost N", "The price in bits.", 1, min=0),
    name: str = option("--name TEXT", "The product's name.", ""),
    buyer: str = option("--buyer TEXT", "The buyer's name.", ""),
    transaction: str | None = option("--id ID", "The purchase's id. Default: a random one."),
    receipt: str | None = option("--receipt FILE|-", "Post the receipt in this file instead of making one."),
) -> None:
    """Post the receipt of a purchase, and print the purchase's id. Acts as viewer:U1.

    extcli makes the receipt, signed with the extension's secret if there is one. A sandbox
    accepts any signature; production needs the secret, or a receipt from Twitch.

    To receive the purchase as a game does, start `socket send subscribe transaction` first.

    \b
    Examples:
      extcli bits purchase hat --cost 50
      extcli socket send subscribe transaction --data '{"sku": "*"}' --wait 1
      extcli bits purchase --receipt receipt.txt
    """
    if (sku is None) == (receipt is None):
        raise UsageError("give either SKU or --receipt FILE")
    if receipt is None:
        transaction = transaction or secrets.token_hex(8)
        product = {"sku": sku, "displayName": name or sku, "cost": {"amount": cost, "type": "bits"}}
        user = session.resolver.identity(VIEWER).user or ""
        token = _signed_receipt(session, {"transactionId": transaction, "userId": user, "product": product})
    else:
        token = read_source(receipt).decode(errors="replace").strip()
    purchase = {"transactionReceipt": token, "displayName": buyer}
    response = session.service(VIEWER).post("bits/transactions", purchase)
    if receipt is None:
        session.output.show_value({"id": transaction}, views.SOLE_VALUE)
    else:
        session.output.show(response, views.RECORD)


@command(app, "list", prints=PURCHASES)
def list_purchases(session: Session, sku: str = argument("SKU", "The product; * lists all products.", "*")) -> None:
    """List up to 10 unsettled purchases, oldest first. Acts as broadcaster.

    An unsettled purchase is neither validated nor refunded. The request goes over the WebSocket. It
    uses the stored link of a game if there is one, unless you pass --as or a token. Plain output is
    $columns.

    Example: extcli bits list hat
    """
    session.output.show_value(_send_over_socket(session, "get", {"sku": sku}), PURCHASES)


@command(app)
def validate(session: Session, purchase: Purchase = None, sku: Sku = None, user: User = None) -> None:
    """Mark a purchase as delivered by the game. Acts as broadcaster, as `bits list` does.

    \b
    Examples:
      extcli bits validate a1b2c3
      extcli bits validate --sku hat --user 7
    """
    _settle(session, "validate", purchase, sku, user)


@command(app)
def refund(session: Session, purchase: Purchase = None, sku: Sku = None, user: User = None) -> None:
    """Mark a purchase as refunded. No bits move. Acts as broadcaster, as `bits list` does.

    Example: extcli bits refund a1b2c3
    """
    _settle(session, "refund", purchase, sku, user)


def _settle(session: Session, verb: str, purchase: str | None, sku: str | None, user: str | None) -> None:
    given = {"transaction_id": purchase, "sku": sku, "user_id": user}
    which = {name: value for name, value in given.items() if value}
    if list(which) not in (["transaction_id"], ["sku", "user_id"]):
        raise UsageError("give either ID, or --sku and --user")
    session.output.show_value(_send_over_socket(session, verb, which), views.NOTHING)
    session.output.note(f"{verb}: {visible(purchase or f'the oldest {sku} of user {user}')}")


def _send_over_socket(session: Session, action: str, data: Json) -> Any:
    from extcli.realtime import login

    login.authenticate(session)
    return session.open_socket().request(action, "transaction", data).data


def _signed_receipt(session: Session, data: Json) -> str:
    """Return a receipt in Twitch's form. Without a secret its signature is worthless."""
    from extcli.api import tokens

    secret = session.resolver.secret() or secrets.token_bytes(32)
    now = session.now() // 1000
    return tokens.sign({"topic": "bits_transaction_receipt", "exp": now + _RECEIPT_LIFETIME, "data": data}, secret)
