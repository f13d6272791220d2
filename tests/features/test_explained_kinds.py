"""Every kind of refusal over REST is explained: the rule, what was held and what was needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from support.explanations import id_of, why
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, real_seconds

Call = Callable[[LiveServer], httpx.Response]


def token(live: LiveServer, **claims: Any) -> httpx.Response:
    return live.client("viewer", user="5", channel=CHANNEL, **claims).get("vote")


def header(live: LiveServer, value: str) -> httpx.Response:
    with Client(base_url=live.url) as client:
        return client.get("/v1/e/vote", headers={"Authorization": value})


def call(method: str, path: str, body: object = None, role: str = "admin", **headers: str) -> Call:
    """A call of the service or of the control API; `body` is JSON, or bytes to send as they are."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()

    def send(live: LiveServer) -> httpx.Response:
        client = live.client(role, user="9001", channel=CHANNEL)
        place = f"{live.url}{path}" if path.startswith("/") else path
        return client.request(method, place, content=content, headers=headers)

    return send


def unvalidated(live: LiveServer) -> httpx.Response:
    with Client(base_url=live.url) as client:
        issued = client.post("/v1/e/pin", json={"identifier": CLIENT_ID}).json()["token"]
    return live.bearer(issued).get("vote")


SEED = {"client_id": CLIENT_ID, "channel": CHANNEL}


def moved(live: LiveServer) -> httpx.Response:
    """Send a token of the system's time to a service whose clock is ahead."""
    live.advance(8 * 86_400_000)
    return token(live, exp=real_seconds() + 900)


KINDS: dict[str, tuple[Call, int, str, str]] = {
    "an unknown path": (call("GET", "/nothing"), 404, "W1", "path /nothing"),
    "a method": (call("PUT", "vote"), 405, "spec: Endpoints", "PUT /v1/e/vote"),
    "a body": (call("POST", "vote", b" " * 66_000), 413, "W8", "66000 bytes"),
    "malformed JSON": (call("POST", "vote", b"{"), 400, "W2", "truncated"),
    "parameters": (call("GET", "vote?" + "a&" * 1_001), 400, "W7", "parameters"),
    "Bearer": (lambda live: header(live, "Bearer a.b.c"), 401, "spec: Authentication", "Bearer"),
    "an expired token": (lambda live: token(live, exp=1_000), 401, "A1", "exp 1970-01-01T00:16:40Z"),
    "a moved clock": (moved, 401, "A1", "clock is 8 days ahead of the system's"),
    "an unvalidated token": (unvalidated, 401, "T2", "PIN is not validated"),
    "a wrong PIN": (call("POST", "validate_pin", {"pin": "AAAAAA"}, "broadcaster"), 400, "T3", "a PIN"),
    "a poll id": (call("GET", "vote?id=a.b"), 400, "W8", 'id "a.b"'),
    "no channel": (lambda live: live.client("admin").get("channel_state"), 400, "A4", "without a channel"),
    "a cursor": (call("GET", "polls?cursor=zz"), 400, "gaps: Polls and stores", "cursor 'zz'"),
    "a start": (call("GET", "accumulate?start=soon"), 400, "R2", 'start "soon"'),
    "a value": (call("POST", "vote", {"value": "1"}), 400, "P2", 'value "1"'),
    "options": (call("POST", "vote_config", {"config": {"options": ["x"] * 65}}), 400, "P4", "65 options"),
    "a large store": (call("POST", "json_store", {"a": "x" * 3_000}), 400, "S5", "3008 bytes"),
    "a patch": (call("PATCH", "channel_state", [{"op": "remove", "path": "/a"}]), 400, "S2", "operation"),
    "a prize": (call("POST", "codes/redeem", {"prize": 10}), 400, "C5", "prize 10"),
    "a code twice": (call("PUT", "codes", {"codes": [["A1", "A1"]], "names": ["Hat"]}), 400, "C2", "same code"),
    "a target": (call("POST", "broadcast", {"data": {}, "target": "nobody"}), 400, "B3", "target 'nobody'"),
    "a receipt": (call("POST", "bits/transactions", {"transactionReceipt": 5}), 400, "gaps: Purchases", "Receipt"),
    "a page": (call("POST", "/_emulator/reset", Origin="https://page.example"), 403, "W5", "Origin"),
    "the clock": (call("POST", "/_emulator/clock", {"advance": -1}), 400, "docs: Clock", "advance -1"),
    "a seed": (call("PUT", "/_emulator/seed", {**SEED, "extcli": 2}), 400, "docs: Seeds", "version 2"),
    "a snapshot": (call("PUT", "/_emulator/snapshot", b"x"), 400, "docs: Snapshots", "line 1"),
    "a wait": (call("GET", "/_emulator/wait?for=x"), 400, "docs: Waits", 'for "x"'),
    "a fork": (call("POST", "/_ns/blue?from=absent"), 404, "docs: Namespaces", "namespace absent"),
}
"""A call, the status of its response, the rule, and a part of what was held."""


@pytest.mark.parametrize(("send", "status", "rule", "held"), KINDS.values(), ids=KINDS)
def test_a_refusal_of_each_part_is_explained_with_the_value_that_was_sent(
    live: LiveServer, send: Call, status: int, rule: str, held: str
):
    answer = send(live)

    explanation = why(live, id_of(answer))
    assert (status, rule) == (answer.status_code, explanation["rule"])
    assert held in explanation["held"]
    assert explanation["needed"]
    assert explanation["text"]


@pytest.mark.parametrize(
    ("path", "body"), [("/_emulator/faults/remove", {"ids": []}), ("accumulate", b'{"data":1e999}')]
)
def test_the_needed_value_of_a_malformed_body_is_not_an_error_text(live: LiveServer, path: str, body: object):
    found = why(live, id_of(call("POST", path, body)(live)))

    assert "what /schema/openapi.json of the service describes" == found["needed"]
