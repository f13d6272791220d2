"""`GET /_emulator/explain` names the rule, what was held and what was needed, for every kind of refusal."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt
import pytest
from websockets.exceptions import InvalidStatus

from emulator.config.settings import Limits, Settings
from emulator.features.explanations import texts
from emulator.features.explanations.cases import Refusal
from emulator.features.explanations.rules import explain
from production.test_production_roles import CREDENTIALS, Invalid, authorization
from production.test_production_socket_roles import ROWS as SOCKET_ROWS
from production.test_production_socket_roles import Row as SocketRow
from production.test_production_socket_roles import jwt_of, name_of
from support.pusher_client import PusherClient
from support.role_table import ROLES, ROWS, Row, each, write_defaults
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer, live_server
from support.socket_client import SocketClient

Call = Callable[[LiveServer], httpx.Response]

ROLE_RULES = {
    "spec: Authentication": "vote vote_logs rank accumulate validate_pin pin_token_exists pin",
    "P4": "vote_config",
    "gaps: Polls and stores": "polls rankings buffers",
    "S1": "extension_config channel_config extension_state channel_state extension_hidden_state",
    "S5": "json_store",
    "C1": "codes codes/mark_from_poll codes/mark_from_list",
    "B1": "broadcast extension_broadcast",
    "gaps: Trivia": "curated_poll_edit curated_poll_edit_option curated_poll_state curated_poll_leaderboard",
    "gaps: Clock and directory": "user_ids",
}
"""The rule about the roles of each endpoint that not all roles may call, by hand."""
SOCKET_RULES = {"state": "S1", "config": "S1", "poll": "P4", "": "B1", "transaction": "gaps: Purchases"}
SOCKET_RULES |= {"twitchPurchaseBits": "gaps: Purchases", "datastream": "spec: Authentication"}
"""The rule about the roles of each target."""


def why(live: LiveServer, id: str) -> dict[str, Any]:
    """The explanation of a request."""
    with Client(base_url=live.url) as client:
        return dict(client.get("/_emulator/explain", params={"id": id}).raise_for_status().json()["explanation"])


def id_of(answer: httpx.Response) -> str:
    return answer.headers["x-request-id"]


def words(roles: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(roles[:-1]), roles[-1])))


def rule_of(row: Row, role: str) -> str:
    if (
        "?id=global-x" in row.name
        and role == "broadcaster"
        and row.path in ("vote", "vote_config", "rank", "json_store")
    ):
        return "A4"
    return next(rule for rule, names in ROLE_RULES.items() if row.path in names.split())


@each([row for row in ROWS if set(row.roles) < set(ROLES)])
def test_a_refused_role_is_explained_with_the_roles_that_may(row: Row, live: LiveServer):
    clients = {role: live.client(role, user="777", channel="777") for role in ROLES}
    write_defaults(clients["admin"])

    found = {role: why(live, id_of(row.call(clients[role]))) for role in ROLES if role not in row.roles}

    for role, explanation in found.items():
        assert rule_of(row, role) == explanation["rule"]
        assert explanation["held"].startswith(f"role {role}")
        assert words([each for each in ROLES if each in row.roles]) in explanation["needed"]
        assert "--as " in explanation["next_step"]
        assert texts.rules()[explanation["rule"]].text == explanation["text"]


@each(ROWS)
def test_a_call_without_a_credential_is_explained(row: Row, live: LiveServer):
    with Client(base_url=f"{live.url}/v1/e/") as client:
        explanation = why(live, id_of(row.call(client)))

    assert "spec: Authentication" == explanation["rule"]
    assert ("no Authorization header", "Authorization: <client id> <JWT>") == (
        explanation["held"],
        explanation["needed"],
    )


@pytest.mark.parametrize("row", [row for row in SOCKET_ROWS if row.roles < set(ROLES)], ids=name_of)
def test_a_refused_role_on_the_socket_is_explained(row: SocketRow, live: LiveServer):
    write_defaults(live.client("admin", user="777", channel="777"))
    for role in (role for role in ROLES if role not in row.roles):
        with SocketClient(live) as game:
            game.data("authenticate", data=jwt_of(authorization(role)))
            assert 403 == game.error(row.action, row.target, row.data)["status"]
            explanation = latest(live)["explanation"]

        allowed = words([each for each in ROLES if each in row.roles])
        is_shared = role == "broadcaster" and str(row.data.get("poll_id", "")).startswith("global-")
        assert ("A4" if is_shared else SOCKET_RULES[row.target]) == explanation["rule"]
        assert explanation["held"].startswith(f"role {role}")
        assert allowed in explanation["needed"]


@pytest.mark.parametrize("row", SOCKET_ROWS, ids=name_of)
def test_a_socket_request_before_authentication_is_explained(row: SocketRow, live: LiveServer):
    with SocketClient(live) as game:
        game.error(row.action, row.target, row.data)
        explanation = latest(live)["explanation"]

    assert ("X3", "an unauthenticated connection") == (explanation["rule"], explanation["held"])


def latest(live: LiveServer) -> dict[str, Any]:
    """The explanation of the latest refusal."""
    with Client(base_url=live.url) as client:
        return dict(client.get("/_emulator/explain").raise_for_status().json())


# Every other kind of refusal


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
    "one word": (lambda live: header(live, CLIENT_ID), 401, "spec: Authentication", "number of words", "<client id>"),
    "no JWT": (lambda live: header(live, f"{CLIENT_ID} no"), 401, "A1", "not a JWT", "JWT signed with HS256"),
    "an expired token": (lambda live: token(live, exp=1_000), 401, "A1", "exp 1970-01-01T00:16:40Z", "in the future"),
    "a later token": (lambda live: token(live, nbf=4_000_000_000), 401, "A1", "nbf 2096-10-02T07:06:40Z", "past"),
    "a claim": (lambda live: token(live, opaque=[]), 401, "A2", "opaque_user_id of another type", "string or number"),
    "a NUL": (lambda live: token(live, opaque="U\0"), 401, "A2", "opaque_user_id with a NUL", "without it"),
    "an unvalidated token": (unvalidated, 401, "T2", "PIN is not validated", "a broadcaster has validated"),
    # PINs
    "a wrong PIN": (call("POST", "validate_pin", {"pin": "AAAAAA"}, "broadcaster"), 400, "T3", "a PIN", "five minutes"),
    "no client id": (call("POST", "/v1/e/pin", {"identifier": ""}), 400, "T2", "no client id", "a client id"),
    "another token": (
        call("POST", "/v1/e/unauthed/validate_pin", {"identifier": CLIENT_ID, "jwt": jwt.encode({}, SECRET)}),
        401, "T5", "another token", "the token of POST pin",
    ),
    # ids and channels
    "a poll id": (call("GET", "vote?id=a.b"), 400, "W8", 'id "a.b"', "letters, digits"),
    "an id": (call("GET", f"rank?id={'x' * 65}"), 400, "W8", "id ", "1 to 64 printable characters"),
    "no channel": (
        lambda live: live.client("admin").post("channel_state", json={}), 400, "A4", "without a channel", "channel_id",
    ),
    "no definition": (call("GET", "vote_config?id=absent"), 404, "P4", "poll absent", "a defined poll"),
    "no JSON store": (call("GET", "json_store?id=absent"), 404, "S5", "id absent", "14 days"),
    "a cursor": (call("GET", "polls?cursor=zz"), 400, "gaps: Polls and stores", 'cursor "zz"', "next of an earlier"),
    "a limit": (call("GET", "polls?limit=0"), 400, "gaps: Polls and stores", 'limit "0"', "1 to 1000"),
    "a start": (call("GET", "accumulate?start=soon"), 400, "R2", 'start "soon"', "an integer"),
    # votes and stores
    "a value": (call("POST", "vote", {"value": 100}), 400, "P2", "value 100", "-99 to 99"),
    "a text": (call("POST", "vote", {"value": "1"}), 400, "P2", 'value "1"', "a JSON integer from -99 to 99"),
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
        400, "S2", "means an array", "a parent that exists",
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
        call("POST", "bits/transactions", {"transactionReceipt": "x"}),
        400, "gaps: Purchases", "three parts", "a receipt",
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
    "a namespace": (call("GET", "/_ns/a.b/v1/e/vote"), 400, "docs: Namespaces", "another name", "letters, digits"),
    "a fork": (call("POST", "/_ns/blue?from=absent"), 404, "docs: Namespaces", "namespace absent", "in use"),
    "a used namespace": (
        filled(call("POST", "/_ns/used/v1/e/json_store", {"a": 1}), then=call("POST", "/_ns/used")),
        409, "docs: Namespaces", "with data", "an empty or new namespace",
    ),
}  # fmt: skip
"""A call, the status of its answer, the rule, and a part of what was held and of what was needed."""


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


@pytest.fixture(scope="module")
def limited() -> Iterator[LiveServer]:
    """A sandbox with small limits."""
    with live_server(Settings(limits=Limits(caller_rate=1, ids=1, namespaces=1, topics=1))) as live:
        yield live


@pytest.mark.parametrize(
    ("text", "rule", "held", "needed"),
    [
        (b"nonsense", "W4", "invalid HTTP request", "a valid HTTP request"),
        (b"GET /v1/e/vote HTTP/1.1\r\nHost: a\r\nHost: b", "gaps: Limits", "two host headers", "one host header"),
        (b"GET / HTTP/1.1" + b"\r\nX: y" * 101, "gaps: Limits", "101 headers", "at most 100 headers"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000, "gaps: Limits", "headers exceed 65536 bytes", "at most 64 KiB"),
    ],
    ids=["invalid", "duplicate", "many", "long"],
)
def test_malformed_http_is_explained(live: LiveServer, text: bytes, rule: str, held: str, needed: str):
    answer = exchange(live, text + b"\r\n\r\n")

    explanation = why(live, re.findall(rb"x-request-id: (\S+)", answer)[0].decode())
    assert (rule, held) == (explanation["rule"], explanation["held"])
    assert needed in explanation["needed"]


@pytest.mark.slow
def test_a_request_that_does_not_arrive_is_explained():
    with live_server(Settings(limits=Limits(request_timeout=1))) as slow:
        exchange(slow, b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")

        assert ("gaps: Limits", "an incomplete request after 1 s") == tuple(
            latest(slow)["explanation"][name] for name in ("rule", "held")
        )


def exchange(live: LiveServer, text: bytes) -> bytes:
    """Send bytes on a connection of their own, and return the answer."""
    with socket.create_connection(("127.0.0.1", urlsplit(live.url).port or 0), timeout=10) as wire:
        wire.sendall(text)
        answer = b""
        with suppress(ConnectionError):
            while data := wire.recv(65_536):
                answer += data
    return answer


def test_a_rate_is_explained(limited: LiveServer):
    client = limited.client("viewer", user="rate", channel=CHANNEL)
    answer = next(answer for _ in range(100) if (answer := client.get("vote")).status_code == 429)

    explanation = why(limited, id_of(answer))

    assert ("gaps: Limits", "requests from this caller above the rate") == (explanation["rule"], explanation["held"])
    assert explanation["needed"].startswith("the next request in ")


def test_a_quota_of_ids_is_explained(limited: LiveServer):
    admin = limited.client("admin", user="quota", channel=CHANNEL)
    admin.post("json_store?id=one", json={}).raise_for_status()

    explanation = why(limited, id_of(admin.post("json_store?id=two", json={})))

    assert "gaps: Limits" == explanation["rule"]
    assert "1 ids" in explanation["held"]
    assert "at most 1 ids" == explanation["needed"]


def test_a_limit_of_namespaces_is_explained(limited: LiveServer):
    with Client(base_url=limited.url) as client:
        client.get("/_ns/one/_emulator/live").raise_for_status()

        explanation = why(limited, id_of(client.get("/_ns/two/_emulator/live")))

    assert ("docs: Namespaces", "1 open namespaces", "fewer than 1") == (
        explanation["rule"], explanation["held"], explanation["needed"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("action", "target", "data", "rule", "held", "needed"),
    [
        ("nope", "", {}, "X9", "action 'nope'", "one of authenticate"),
        ("get", "drops", {}, "X9", "target drops", "a target of this service"),
        ("get", "nothing", {}, "X9", "target nothing", "one of"),
        ("get", "state", {"state_id": "x"}, "S2", "x", "one of"),
        ("subscribe", "", {}, "X3", "no target", "params.target"),
        ("authenticate", "", {"client_id": CLIENT_ID, "pin": "AAAAAA"}, "T3", "a PIN", "five minutes"),
        ("authenticate", "", {"client_id": CLIENT_ID, "refresh": "x"}, "T3", "a refresh token", "a valid one"),
        ("authenticate", "", {"client_id": CLIENT_ID}, "X4", "none or several", "exactly one"),
        ("set", "state", {"state_id": "channel", "state": {"a": "x" * 70_000}}, "X3", "bytes", "at most 65536 bytes"),
    ],
)
def test_a_refused_socket_request_is_explained(
    live: LiveServer,
    game: SocketClient,
    action: str,
    target: str,
    data: dict[str, Any],
    rule: str,
    held: str,
    needed: str,
):
    game.error(action, target, data)

    found = latest(live)

    assert "frame" == found["entry"]["kind"]
    assert rule == found["explanation"]["rule"]
    assert held in found["explanation"]["held"]
    assert needed in found["explanation"]["needed"]


def test_a_message_that_is_not_json_is_explained(live: LiveServer, game: SocketClient):
    game.socket.send("{")
    game.message()

    assert ("X3", "a JSON object") == (latest(live)["explanation"]["rule"], latest(live)["explanation"]["needed"])


def test_a_refused_handshake_is_explained(live: LiveServer):
    with pytest.raises(InvalidStatus) as refused:
        SocketClient(live, "/v1/x")

    explanation = why(live, refused.value.response.headers["x-request-id"])
    assert ("X1", "path /v1/x") == (explanation["rule"], explanation["held"])


@pytest.mark.parametrize(
    ("send", "rule", "needed"),
    [
        (lambda page: page.send("nope"), "B1", "pusher:subscribe"),
        (lambda page: page.send("pusher:subscribe", {"channel": ""}), "X3", "1 to 200 characters"),
        (lambda page: page.send("pusher:subscribe", {"channel": "private-x"}), "B1", "a public channel"),
    ],
    ids=["event", "channel", "private"],
)
def test_a_refused_message_of_a_page_is_explained(live: LiveServer, page: PusherClient, send, rule: str, needed: str):
    send(page)
    page.frame()

    explanation = latest(live)["explanation"]
    assert rule == explanation["rule"]
    assert needed in explanation["needed"]


@pytest.mark.parametrize(
    ("send", "code", "held"),
    [(b"\0", 1003, "a binary message"), ("x" * 5_000, 1009, "5000 bytes")],
    ids=["binary", "large"],
)
def test_a_closed_socket_is_explained(
    live: LiveServer, unlinked: SocketClient, send: bytes | str, code: int, held: str
):
    unlinked.socket.send(send)
    assert code == unlinked.close_code()

    found = latest(live)

    assert (code, "X3") == (found["entry"]["status"], found["explanation"]["rule"])
    assert held in found["explanation"]["held"]


@pytest.mark.parametrize(("reason", "rule"), [("text frames only", "X3"), ("over 1048576 bytes unread", "B4")])
def test_the_reason_of_a_closed_socket_is_explained(live: LiveServer, reason: str, rule: str):
    assert rule == why(live, reason)["rule"]


@pytest.mark.parametrize(
    ("invalid", "role"), [(invalid, role) for invalid in CREDENTIALS.values() for role in invalid.roles]
)
def test_every_token_that_production_refuses_is_explained(production: LiveServer, invalid: Invalid, role: str):
    with Client(base_url=f"{production.url}/v1/e/", headers=invalid.headers(role)) as client:
        body = client.get("vote").json()

    found = explain(Refusal(invalid.status, body["reason"], body["info"]))

    assert found is not None
    assert found.rule in ("A1", "spec: Authentication")
    assert found.held
    assert found.needed


# The API itself


def test_a_request_that_was_not_refused_has_no_explanation(live: LiveServer, viewer):
    answer = viewer().get("vote")

    with Client(base_url=live.url) as client:
        found = client.get("/_emulator/explain", params={"id": id_of(answer)}).json()

    assert "explanation" not in found
    assert ("GET /v1/e/vote", 200, "viewer", CLIENT_ID, CHANNEL) == tuple(
        found["entry"][name] for name in ("name", "status", "role", "client_id", "channel_id")
    )


def test_an_entry_is_also_explained_by_its_number(live: LiveServer, stranger: Client, viewer):
    answer = viewer().delete("vote")
    (entry,) = stranger.get("/_emulator/journal", params={"id": id_of(answer)}).json()["entries"]

    assert why(live, id_of(answer)) == why(live, str(entry["number"]))


def test_the_verdict_of_production_is_explained(live: LiveServer, stranger: Client):
    issued = stranger.post("/v1/e/authtoken", json={"client_id": CLIENT_ID, "role": "viewer"}).json()["token"]
    answer = live.bearer(issued).get("vote")

    found = stranger.get("/_emulator/explain", params={"id": id_of(answer)}).json()

    assert ("refuse", "stage") == (found["production"]["verdict"], found["production"]["rule"])
    assert texts.rules()["stage"].next_step == found["production"]["next_step"]


def test_the_journal_has_the_rule_and_the_next_step_of_a_refusal(live: LiveServer, stranger: Client, viewer):
    viewer().delete("vote")

    (entry,) = stranger.get("/_emulator/journal?status=403").json()["entries"]

    assert ("spec: Authentication", "Act in another role: add `--as broadcaster`.") == (
        entry["rule"],
        entry["next_step"],
    )


def test_without_a_refusal_the_answer_is_empty(stranger: Client):
    assert {} == stranger.get("/_emulator/explain").raise_for_status().json()


@pytest.mark.parametrize("query", ["id=A11", "rule=A11"])
def test_an_unknown_name_is_a_404_with_the_nearest_rules(stranger: Client, query: str):
    answer = stranger.get(f"/_emulator/explain?{query}")

    assert 404 == answer.status_code
    assert "A1" in answer.json()["info"].rpartition("nearest rules are ")[2].split(", ")


@pytest.mark.parametrize("query", ["id=A99", "rule=A99", "id=x7"])
def test_a_name_like_a_ruling_is_not_looked_up_in_the_journal(stranger: Client, query: str):
    answer = stranger.get(f"/_emulator/explain?{query}")

    assert answer.json()["info"].startswith("there is no rule ")


@pytest.mark.parametrize(
    ("path", "near"),
    [("/v1/e/vots", "/v1/e/vote"), ("/v1/e/brodcast", "/v1/e/broadcast"), ("/_emulator/clok", "/_emulator/clock")],
)
def test_an_unknown_path_is_refused_with_the_nearest_one(stranger: Client, path: str, near: str):
    answer = stranger.get(path)

    assert (404, f"there is no {path}; did you mean {near}?") == (answer.status_code, answer.json()["info"])


@pytest.mark.parametrize("path", ["/v1/e/zzzz", f"/v1/e/vote{'x' * 100}", "/x"])
def test_a_path_unlike_all_others_is_refused_without_a_guess(stranger: Client, path: str):
    assert "did you mean" not in stranger.get(path).json()["info"]


def test_a_rule_is_read_by_its_name(stranger: Client):
    rule = stranger.get("/_emulator/explain?rule=a1").json()["rule"]

    assert ("A1", texts.rules()["A1"].text) == (rule["id"], rule["text"])


def test_explanations_are_not_recorded(live: LiveServer, stranger: Client):
    stranger.get("/_emulator/explain?rule=A1")
    stranger.get("/_emulator/explain?rule=nothing")

    assert [] == stranger.get("/_emulator/journal?path=explain").json()["entries"]


def test_an_explanation_shows_no_token(live: LiveServer, stranger: Client):
    secret = jwt.encode({"role": "viewer", "exp": 1}, SECRET)
    answer = live.bearer(secret).get("vote", params={"id": secret})

    assert secret not in stranger.get("/_emulator/explain", params={"id": id_of(answer)}).text
    assert secret not in stranger.get("/_emulator/explain").text


def test_the_answer_to_a_handshake_has_a_mark_in_the_sandbox_only(live: LiveServer, production: LiveServer):
    marks = []
    for service in (live, production):
        with SocketClient(service) as game:
            assert game.socket.response is not None
            marks.append(game.socket.response.headers.get("X-Emulator-Mark", ""))

    assert marks[0].isdecimal()
    assert "" == marks[1]
