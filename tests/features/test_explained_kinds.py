"""Every kind of refusal over REST is explained: the rule, what was held and what was needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import jwt
import pytest

from support.explanations import id_of, why
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer, real_seconds

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


def filled(*before: Call, then: Call) -> Call:
    def send(live: LiveServer) -> httpx.Response:
        for earlier in before:
            earlier(live).raise_for_status()
        return then(live)

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


KINDS: dict[str, tuple[Call, int, str, str, str]] = {
    # paths and HTTP
    "an unknown path": (call("GET", "/v1/e/nothing"), 404, "W1", "path /v1/e/nothing", "under /v1/e/"),
    "a path outside": (call("GET", "/nothing"), 404, "W1", "path /nothing", "under /v1/e/"),
    "a method": (call("PUT", "vote"), 405, "spec: Endpoints", "PUT /v1/e/vote", "a method of this path"),
    "a preflight": (call("OPTIONS", "/_emulator/clock"), 405, "spec: Endpoints", "OPTIONS", "a method"),
    "a body": (call("POST", "vote", b" " * 66_000), 413, "W8", "66000 bytes", "at most 65536 bytes"),
    "malformed JSON": (call("POST", "vote", b"{"), 400, "W2", "truncated", "JSON in UTF-8"),
    "a nested body": (call("POST", "accumulate", b"[" * 60_000), 400, "W2", "more levels", "fewer levels"),
    "parameters": (call("GET", "vote?" + "a&" * 1_001), 400, "W7", "parameters", "at most 1000"),
    # tokens
    "Bearer": (lambda live: header(live, "Bearer a.b.c"), 401, "spec: Authentication", "Bearer", "<client id> <JWT>"),
    "one word": (lambda live: header(live, CLIENT_ID), 401, "spec: Authentication", "one word", "<client id>"),
    "no JWT": (lambda live: header(live, f"{CLIENT_ID} no"), 401, "A1", "not a JWT", "JWT signed with HS256"),
    "an expired token": (lambda live: token(live, exp=1_000), 401, "A1", "exp 1970-01-01T00:16:40Z", "in the future"),
    "a moved clock": (moved, 401, "A1", "clock is 8 days ahead of the system's", "of this service's clock"),
    "a later token": (lambda live: token(live, nbf=4_000_000_000), 401, "A1", "nbf 2096-10-02T07:06:40Z", "past"),
    "a claim": (lambda live: token(live, opaque=[]), 401, "A2", "opaque_user_id of another type", "string or number"),
    "a NUL": (lambda live: token(live, opaque="U\0"), 401, "A2", "opaque_user_id with a NUL", "without it"),
    "an unvalidated token": (unvalidated, 401, "T2", "PIN is not validated", "a broadcaster has validated"),
    # PINs
    "a wrong PIN": (call("POST", "validate_pin", {"pin": "AAAAAA"}, "broadcaster"), 400, "T3", "a PIN", "five minutes"),
    "no client id": (call("POST", "/v1/e/pin", {"identifier": ""}), 400, "T2", "identifier", "the client id"),
    "another token": (
        call("POST", "/v1/e/unauthed/validate_pin", {"identifier": CLIENT_ID, "jwt": jwt.encode({}, SECRET)}),
        401, "T5", "another token", "the token of POST pin",
    ),
    "a PIN in place of its token": (
        call("POST", "/v1/e/unauthed/validate_pin", {"identifier": CLIENT_ID, "pin": "AAAAAA"}),
        400, "T5", "no jwt", "the token of POST pin",
    ),
    # ids and channels
    "a poll id": (call("GET", "vote?id=a.b"), 400, "W8", 'id "a.b"', "letters, digits"),
    "an id": (call("GET", f"rank?id={'x' * 65}"), 400, "W8", "id ", "1 to 64 printable characters"),
    "no channel": (
        lambda live: live.client("admin").post("channel_state", json={}), 400, "A4", "without a channel", "channel_id",
    ),
    "no definition": (call("GET", "vote_config?id=absent"), 404, "P4", "poll absent", "a defined poll"),
    "no JSON store": (call("GET", "json_store?id=absent"), 404, "S5", "id absent", "14 days"),
    "a cursor": (call("GET", "polls?cursor=zz"), 400, "gaps: Polls and stores", "cursor 'zz'", "next of an earlier"),
    "a limit": (call("GET", "polls?limit=0"), 400, "gaps: Polls and stores", 'limit "0"', "1 to 1000"),
    "a start": (call("GET", "accumulate?start=soon"), 400, "R2", 'start "soon"', "an integer"),
    # votes and stores
    "a value": (call("POST", "vote", {"value": 100}), 400, "P2", "value 100", "-99 to 99"),
    "a text": (call("POST", "vote", {"value": "1"}), 400, "P2", 'value "1"', "an integer"),
    "a closed poll": (
        filled(call("POST", "vote_config", {"config": {"disabled": True}}), then=call("POST", "vote", {"value": 1})),
        400, "P4", "disabled", "an open poll",
    ),
    "options": (
        call("POST", "vote_config", {"config": {"options": ["x"] * 65}}), 400, "P4", "65 options", "1 to 64",
    ),
    "a large blob": (call("POST", "accumulate", "x" * 300), 400, "R3", "302 bytes", "under 256 bytes"),
    "a large store": (call("POST", "json_store", {"a": "x" * 3_000}), 400, "S5", "3008 bytes", "at most 2048 bytes"),
    "no object": (call("POST", "viewer_state", []), 400, "S2", "the body []", "a JSON object"),
    "a failed patch": (
        call("PATCH", "channel_state", [{"op": "test", "path": "/a", "value": 1}]),
        400, "S2", "operation 0", "RFC 6902",
    ),
    "an array in a patch": (
        call("PATCH", "channel_state", [{"op": "add", "path": "/a/-", "value": 1}]),
        400, "S2", "means an array", "operations of RFC 6902",
    ),
    "a long patch": (
        call("PATCH", "channel_state", [{"op": "remove", "path": "/a"}] * 1_001),
        400, "S2", "1001 operations", "at most 1000 operations",
    ),
    # codes, broadcasts, purchases, trivia
    "an unknown prize": (
        call("POST", "codes/mark_from_list", {"prizes": [3], "prize_limits": [1], "users": ["5"]}),
        400, "C3", "prize 3", "a prize with a set",
    ),
    "a prize": (call("POST", "codes/redeem", {"prize": 10}), 400, "C5", "prize 10", "0 to 9"),
    "a code twice": (
        call("PUT", "codes", {"codes": [["A1", "A1"]], "names": ["Hat"]}), 400, "C2", "the same code", "differ",
    ),
    "a target": (
        call("POST", "broadcast", {"event": "e", "data": {}, "target": "nobody"}),
        400, "B3", "target 'nobody'", "whisper",
    ),
    "another channel": (
        call("POST", "broadcast", {"event": "e", "data": {}, "user_id": "888"}, "broadcaster"),
        403, "B1", "role broadcaster", "role admin or backend",
    ),
    "a receipt": (
        call("POST", "bits/transactions", {"transactionReceipt": 5}),
        400, "gaps: Purchases", "transactionReceipt", "a string",
    ),
    "a locked question": (
        filled(
            call("POST", "curated_poll_edit", {"id": "q"}),
            call("POST", "curated_poll_edit_option", {"id": "q", "option": {"id": "o"}}),
            then=call("POST", "curated_poll", {"question_id": "q", "vote": "o"}),
        ),
        400, "gaps: Trivia", "state", "unlocked",
    ),
    # the control API
    "a page": (
        call("POST", "/_emulator/reset", Origin="https://page.example"), 403, "W5", "Origin", "the same origin",
    ),
    "a host": (call("GET", "/_emulator/clock", Host="page.example"), 403, "W5", "Host 'page.example'", "loopback"),
    "the clock": (call("POST", "/_emulator/clock", {"advance": -1}), 400, "docs: Clock", "advance -1", "0 or more ms"),
    "a seed": (call("PUT", "/_emulator/seed", {**SEED, "extcli": 2}), 400, "docs: Seeds", "version 2", "version 1"),
    "a snapshot": (call("PUT", "/_emulator/snapshot", b"x"), 400, "docs: Snapshots", "line 1", "as it was saved"),
    "a wait": (call("GET", "/_emulator/wait?for=x"), 400, "docs: Waits", 'for "x"', "one of"),
    "a mark": (
        call("GET", "/_emulator/wait?for=poll&id=a&client_id=c&since=99999"), 400, "docs: Waits", "since", "this run",
    ),
    "a namespace": (call("GET", "/_ns/a.b/v1/e/vote"), 400, "docs: Namespaces", "the name 'a.b'", "letters, digits"),
    "a fork": (call("POST", "/_ns/blue?from=absent"), 404, "docs: Namespaces", "namespace absent", "in use"),
    "a used namespace": (
        filled(call("POST", "/_ns/used/v1/e/json_store", {"a": 1}), then=call("POST", "/_ns/used")),
        409, "docs: Namespaces", "with data", "an empty or new namespace",
    ),
}  # fmt: skip
"""A call, the status of its response, the rule, and parts of the held and the needed value."""


@pytest.mark.parametrize(("send", "status", "rule", "held", "needed"), KINDS.values(), ids=KINDS)
def test_every_kind_of_refusal_is_explained(
    live: LiveServer, send: Call, status: int, rule: str, held: str, needed: str
):
    answer = send(live)

    explanation = why(live, id_of(answer))
    assert (status, rule) == (answer.status_code, explanation["rule"])
    assert held in explanation["held"]
    assert needed in explanation["needed"]
    assert explanation["text"]


@pytest.mark.parametrize(
    ("path", "body"), [("/_emulator/faults/remove", {"ids": []}), ("accumulate", b'{"data":1e999}')]
)
def test_the_needed_value_of_a_malformed_body_is_not_an_error_text(live: LiveServer, path: str, body: object):
    found = why(live, id_of(call("POST", path, body)(live)))

    assert "what /schema/openapi.json of the service describes" == found["needed"]
