"""Purchases: a page posts a receipt, and the channel's games receive and settle it."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import jwt
import pytest

from support.service import CLIENT_ID, OTHER_SECRET, SECRET, Client, LiveServer, real_seconds
from support.signing import signed
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

    assert (201, {}) == ((answer := post(viewer(), receipt())).status_code, answer.json())

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


@pytest.mark.parametrize("target", ["transaction", "twitchPurchaseBits"])
def test_games_follow_purchases_under_either_name(game: SocketClient, viewer, target: str):
    game.data("subscribe", target, {"sku": "*"})
    post(viewer(), receipt())
    assert "t1" == game.update()["data"]["id"]

    game.data("unsubscribe", target, {"sku": "*"})
    post(viewer(), receipt("t2"))
    assert game.no_update()


@pytest.mark.parametrize("target", ["transaction", "twitchPurchaseBits"])
def test_following_purchases_without_a_product_is_an_error(game: SocketClient, target: str):
    assert "data.sku" in game.error("subscribe", target, {})["detail"]


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


def test_a_purchase_is_found_among_more_than_100(game: SocketClient, viewer):
    buyer = viewer()
    for number in range(101):
        post(buyer, receipt(f"t{number}", sku="sword" if number < 100 else "hat")).raise_for_status()

    assert ["t100"] == [each["id"] for each in game.data("get", "transaction", {"sku": "hat"})["transactions"]]


@pytest.mark.parametrize("action", ["validate", "refund"])
@pytest.mark.parametrize(
    "which",
    [
        {"transaction_id": "t1"},
        {"transaction_id": "OWN"},
        {"muxy_id": "OWN"},
        {"id": "t1"},
        {"id": "OWN"},
        {"transaction_id": "OWN", "user_id": "5"},
        {"transaction_id": "t1", "details": "a reason"},
        {"sku": "hat", "user_id": "5"},
        {"sku": "hat", "user_id": "U5"},
        {"sku": "hat", "user_id": "UBUYER"},
    ],
    ids=str,
)
def test_a_settled_purchase_is_no_longer_outstanding(game: SocketClient, viewer, action: str, which: dict[str, str]):
    post(viewer("5", opaque="UBUYER"), receipt())
    post(viewer(), receipt("t2", user="6"))
    own = game.data("get", "transaction", {"sku": "*"})["transactions"][0]["muxy_id"]
    which = {name: own if value == "OWN" else value for name, value in which.items()}

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

    assert (201, 7) == (answer.status_code, game.data("get", "transaction", {"sku": "*"})["transactions"][0]["cost"])


@pytest.mark.parametrize(
    "token",
    ["", "abc", "a.b.c", "e30.e30.x", jwt.encode({"data": {"transactionId": "", "userId": "5"}}, SECRET)],
)
@pytest.mark.ruling("T6")
def test_the_sandbox_accepts_any_text_as_a_receipt(viewer, game: SocketClient, token: str):
    answers = [post(viewer(), token).status_code for _ in range(2)]
    body = {"transactionReceipt": token, "transactionId": "b1", "userId": "5", "sku": "hat"}
    answers.append(viewer().post("bits/transactions", json=body).status_code)

    listed = game.data("get", "transaction", {"sku": "*"})["transactions"]
    assert [201] * 3 == answers
    assert [("hat", 0), *[("unknown", 0)] * 2] == sorted((each["sku"], each["cost"]) for each in listed)
    assert 3 == len({each["id"] for each in listed})
    assert ["b1"] == [each["id"] for each in listed if each["sku"] == "hat"]


@pytest.mark.ruling("T6")
@pytest.mark.parametrize("claims", [{}, {"data": {"transactionId": "", "userId": "5"}}])
def test_production_refuses_a_receipt_that_it_cannot_read(production: LiveServer, claims: dict[str, Any]):
    soon = real_seconds() + 600
    answer = post(production.client("admin", channel="777", exp=soon), jwt.encode({**claims, "exp": soon}, SECRET))

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
    assert {"good": 201, "forged": 400, "expired": 400, "without exp": 400} == statuses


@pytest.mark.parametrize("which", [{}, {"muxy_id": ""}, {"sku": "hat"}, {"user_id": "5"}, {"id": 5}])
def test_a_purchase_to_settle_must_be_named(game: SocketClient, viewer, which: dict[str, Any]):
    post(viewer(), receipt())

    assert 400 == game.error("validate", "transaction", which)["status"]


def test_a_receipt_is_accepted_in_one_channel_only(game: SocketClient, viewer):
    first, *others = [post(viewer("5", channel=channel), receipt()) for channel in ("777", "888", "999")]

    assert (201, [400, 400]) == (first.status_code, [answer.status_code for answer in others])
    assert "was posted before" in others[0].json()["info"]
    assert 201 == post(viewer("5"), receipt()).status_code


def test_a_receipt_is_accepted_from_one_user_only(game: SocketClient, viewer):
    game.data("subscribe", "twitchPurchaseBits", {"sku": "*"})
    statuses = [post(viewer(user), receipt()).status_code for user in ("5", "6", "5")]
    other_buyer = post(viewer("5"), receipt(user="6")).status_code

    assert ([201, 400, 201], 400) == (statuses, other_buyer)
    assert "5" == game.update()["data"]["userId"]
    assert game.no_update()


def test_a_settled_purchase_cannot_be_posted_in_another_channel(live: LiveServer, game: SocketClient, viewer):
    post(viewer("5"), receipt())
    game.data("validate", "transaction", {"id": "t1"})

    assert 400 == post(viewer("5", channel="888"), receipt()).status_code


def test_another_extension_may_have_a_purchase_of_the_same_id(viewer):
    assert [201, 201] == [
        post(viewer("5", client_id=name), receipt()).status_code for name in (CLIENT_ID, "other-extension")
    ]


def test_simultaneous_posts_of_one_receipt_are_accepted_in_one_channel(live: LiveServer, viewer):
    channels = [str(number) for number in range(20)]
    clients = [viewer("5", channel=channel) for channel in channels]

    with ThreadPoolExecutor(len(clients)) as pool:
        statuses = list(pool.map(lambda client: post(client, receipt()).status_code, clients))

    assert {201: 1, 400: 19} == Counter(statuses)


def test_the_transaction_id_next_to_the_receipt_is_ignored(game: SocketClient, viewer):
    body = {"transactionReceipt": receipt(), "transactionId": "other", "userId": "6"}

    viewer("5").post("bits/transactions", json=body).raise_for_status()

    (listed,) = game.data("get", "transaction", {"sku": "*"})["transactions"]
    assert ("t1", "5") == (listed["id"], listed["userId"])


@pytest.mark.parametrize(
    "amount", [-1, 2**53, 10**30, int("9" * 4_300), "9" * 5_000, "-1", "1_0", " 5", "٣", "", 1.5, True]
)
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
    answers = {
        "the buyer": post(buyer("5"), receipt("q1", exp=soon)),
        "the buyer, as opaque id": post(buyer(None, opaque="U5"), receipt("q2", exp=soon)),
        "the buyer, as broadcaster": post(buyer("5", "broadcaster"), receipt("q3", exp=soon)),
        "another viewer": post(buyer("6"), receipt("q4", exp=soon)),
        "an anonymous viewer": post(buyer(None, opaque="A5"), receipt("q5", exp=soon)),
        "a broadcaster": post(buyer("777", "broadcaster"), receipt("q6", exp=soon)),
        "a backend": post(buyer(None, "backend"), receipt("q7", exp=soon)),
    }

    assert [201, 201, 201, 400, 400, 400, 201] == [answer.status_code for answer in answers.values()]
    assert "userId" in answers["another viewer"].json()["info"]


def test_in_production_a_known_buyer_may_post_under_their_opaque_id(buyer):
    token = receipt("v1", user="5150", exp=real_seconds() + 600)
    hidden, shared = buyer(None, opaque="Uopaque"), buyer("5150", opaque="Uopaque")
    before = post(hidden, token).status_code
    shared.post("vote", json={"value": 1}).raise_for_status()

    assert [400, 201] == [before, post(hidden, token).status_code]


def test_a_receipt_refused_to_another_user_stays_good_for_the_buyer(buyer):
    token = receipt("r1", exp=real_seconds() + 600)

    assert [400, 201, 201] == [post(buyer(user), token).status_code for user in ("6", "5", "5")]


def test_in_production_a_receipt_signed_by_the_service_itself_is_refused(production: LiveServer, buyer):
    key = production.service.tokens._service_key.value.encode()

    assert 400 == post(buyer("5"), receipt("s1", key=key, exp=real_seconds() + 600)).status_code


@pytest.mark.parametrize("exp", [None, 2_000_000_000_000, True, "soon"])
def test_in_production_a_receipt_needs_an_exp_in_seconds(buyer, exp: object):
    product = {"sku": "hat", "cost": {"amount": 1}}
    payload = {"exp": exp, "data": {"transactionId": "u1", "userId": "5", "product": product}}

    assert 400 == post(buyer("5"), signed({"alg": "HS256"}, payload)).status_code
