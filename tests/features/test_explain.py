"""`GET /_emulator/explain`: its responses and parameters, and refusals of calls, sockets, limits and roles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from emulator.contract import rules
from emulator.core.settings import Limits, Settings
from production.test_production_roles import authorization
from production.test_production_socket_roles import ROWS as SOCKET_ROWS
from production.test_production_socket_roles import Row as SocketRow
from production.test_production_socket_roles import jwt_of, name_of
from support.explanations import id_of, latest, why
from support.journal import entries_of
from support.pusher_client import PusherClient
from support.role_table import ROLES, any_of, write_defaults
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server, real_seconds
from support.socket_client import SocketClient


def test_a_refused_request_is_explained_by_its_id_and_its_number(live: LiveServer, stranger: Client, viewer):
    accepted, refused = viewer().get("vote"), viewer().delete("vote")

    found = [stranger.get("/_emulator/explain", params={"id": id_of(each)}).json() for each in (accepted, refused)]
    (entry,) = stranger.get("/_emulator/journal?status=403").json()["entries"]

    assert "explanation" not in found[0]
    assert ("GET /v1/e/vote", 200, "viewer", CLIENT_ID, CHANNEL) == tuple(
        found[0]["entry"][name] for name in ("name", "status", "role", "client_id", "channel_id")
    )
    assert "spec: Authentication" == found[1]["rule"]["id"] == found[1]["explanation"]["rule"] == entry["rule"]
    assert found[1]["explanation"]["next_step"] == entry["next_step"]
    assert why(live, id_of(refused)) == why(live, str(entry["number"]))
    assert "x-emulator-code" not in accepted.headers


def test_the_verdict_of_production_is_explained(live: LiveServer, stranger: Client):
    answer = live.client("viewer", user="1", channel=CHANNEL).get("vote")  # without exp

    found = stranger.get("/_emulator/explain", params={"id": id_of(answer)}).json()

    assert ("refuse", "exp") == (found["production"]["verdict"], found["production"]["rule"])
    assert rules.rules()["exp"]["next_step"] == found["production"]["next_step"]


def test_without_a_refusal_the_response_is_empty(stranger: Client):
    assert {} == stranger.get("/_emulator/explain").raise_for_status().json()


@pytest.mark.parametrize("query", ["id=A11", "rule=A11", "id=x7"])
def test_an_unknown_name_is_a_404_with_the_nearest_rules(stranger: Client, query: str):
    answer = stranger.get(f"/_emulator/explain?{query}")

    assert (404, True) == (answer.status_code, answer.json()["info"].startswith("there is no rule "))
    assert "A1" in answer.json()["info"].rpartition("rules with similar names: ")[2].split(", ") or "x7" in query


def test_a_rule_is_read_by_its_name(stranger: Client):
    rule = stranger.get("/_emulator/explain?rule=a1").json()["rule"]

    assert ("A1", rules.rules()["A1"]["text"]) == (rule["id"], rule["text"])


def test_explanations_are_not_recorded(live: LiveServer, stranger: Client):
    stranger.get("/_emulator/explain?rule=A1")
    stranger.get("/_emulator/explain?rule=nothing")

    assert [] == stranger.get("/_emulator/journal?path=explain").json()["entries"]


def test_the_response_to_a_handshake_has_a_mark_in_the_sandbox_only(live: LiveServer, production: LiveServer):
    marks = []
    for service in (live, production):
        with SocketClient(service) as game:
            assert game.socket.response is not None
            marks.append(game.socket.response.headers.get("X-Emulator-Mark", ""))

    assert marks[0].isdecimal()
    assert "" == marks[1]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", "/v1/e/vote", "auth.no_header"),
        ("GET", "/v1/e/polls", "auth.no_header"),
        ("GET", "/v1/e/nothing", "http.no_path"),
        ("PUT", "/v1/e/vote", "http.wrong_method"),
    ],
)
def test_a_refused_call_has_its_code_in_the_sandbox_only(
    live: LiveServer, production: LiveServer, stranger: Client, method: str, path: str, code: str
):
    answer, there = (httpx.request(method, f"{service.url}{path}") for service in (live, production))

    assert (code, None) == (answer.headers.get("x-emulator-code"), there.headers.get("x-emulator-code"))
    (entry,) = stranger.get("/_emulator/journal", params={"id": id_of(answer)}).json()["entries"]
    assert code == entry["code"]


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
    "malformed JSON": (call("POST", "vote", b"{"), 400, "W2", "truncated"),
    "Bearer": (lambda live: header(live, "Bearer a.b.c"), 401, "spec: Authentication", "Bearer"),
    "an expired token": (lambda live: token(live, exp=1_000), 401, "A1", "exp 1970-01-01T00:16:40Z"),
    "a moved clock": (moved, 401, "A1", "clock is 8 days ahead of the system's"),
    "an unvalidated token": (unvalidated, 401, "T2", "PIN is not validated"),
    "a wrong PIN": (call("POST", "validate_pin", {"pin": "AAAAAA"}, "broadcaster"), 400, "T3", "a PIN"),
    "no channel": (lambda live: live.client("admin").get("channel_state"), 400, "A4", "without a channel"),
    "a value": (call("POST", "vote", {"value": "1"}), 400, "P2", 'value "1"'),
    "a page": (call("POST", "/_emulator/reset", Origin="https://page.example"), 403, "W5", "Origin"),
    "a seed": (call("PUT", "/_emulator/seed", {**SEED, "extcli": 2}), 400, "docs: Seeds", "extcli: must be 1"),
    "a snapshot": (call("PUT", "/_emulator/snapshot", b"x"), 400, "docs: Snapshots", "line 1"),
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

    assert "a value as /schema/openapi.json of the service describes it" == found["needed"]


# Sockets


@pytest.mark.parametrize(
    ("event", "channel", "rule"), [("nope", None, "B1"), ("subscribe", "", "X3"), ("subscribe", "private-x", "B1")]
)
def test_a_refused_message_of_a_page_is_explained(live: LiveServer, page: PusherClient, event, channel, rule: str):
    page.send(f"pusher:{event}", {} if channel is None else {"channel": channel})
    page.frame()

    assert rule == latest(live)["explanation"]["rule"]


def test_a_refused_handshake_is_explained(live: LiveServer):
    with pytest.raises(InvalidStatus) as refused:
        SocketClient(live, "/v1/x")

    explanation = why(live, refused.value.response.headers["x-request-id"])
    assert ("X1", "path /v1/x") == (explanation["rule"], explanation["held"])


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
    assert found["explanation"] == why(live, found["entry"]["detail"])


# Limits


@pytest.fixture(scope="module")
def limited() -> Iterator[LiveServer]:
    """A sandbox with small limits."""
    with live_server(Settings(limits=Limits(caller_rate=1, ids=1, namespaces=1, topics=1))) as live:
        yield live


@pytest.mark.parametrize(
    ("text", "status", "endpoint", "rule", "held"),
    [
        pytest.param(b"\x16\x03\x01 this is no HTTP", 400, "", "W4", "invalid HTTP", id="TLS"),
        pytest.param(b"FOO \xff HTTP/1.1\r\nHost: x", 400, "", "W4", "invalid HTTP", id="method"),
        pytest.param(b"GET /v1/e/vote HTTP/9.9 x", 400, "GET /v1/e/vote", "W4", "invalid HTTP", id="version"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b", 400, "GET /", "gaps: Limits", "several host", id="hosts"),
        pytest.param(b"GET / HTTP/1.1" + b"\r\nX: y" * 101, 431, "GET /", "gaps: Limits", "101 headers", id="many"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000, 431, "GET /", "gaps: Limits", "65536 bytes", id="long"),
    ],
)
def test_malformed_http_gets_an_error_that_is_recorded_and_explained(
    live: LiveServer, text: bytes, status: int, endpoint: str, rule: str, held: str
):
    head, _, body = live.exchange(text + b"\r\n\r\n").decode().partition("\r\n\r\n")

    entry = entries_of(live, status=status)[-1]
    explanation = why(live, entry["id"])

    assert head.startswith(f"HTTP/1.1 {status} ")
    assert {"content-type: application/json", f"content-length: {len(body)}", f"x-request-id: {entry['id']}"} <= {
        *head.split("\r\n")
    }
    assert (endpoint, rule, entry["reason"]) == (entry["endpoint"], explanation["rule"], json.loads(body)["reason"])
    assert held in explanation["held"]


@pytest.mark.slow
def test_a_request_that_does_not_arrive_is_recorded_and_explained():
    with live_server(Settings(limits=Limits(request_timeout=1))) as slow:
        slow.exchange(b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")

        (entry,), explanation = entries_of(slow, status=408), latest(slow)["explanation"]
        assert ("POST /v1/e/vote", "gaps: Limits") == (entry["endpoint"], explanation["rule"])


def test_used_up_limits_are_explained(limited: LiveServer):
    client, admin = (limited.client(role, user=role, channel=CHANNEL) for role in ("viewer", "admin"))
    rate = next(answer for _ in range(100) if (answer := client.get("vote")).status_code == 429)
    quota = [admin.post(f"json_store?id={name}", json={}) for name in ("one", "two")][-1]
    with Client(base_url=limited.url) as anyone:
        namespace = [anyone.get(f"/_ns/{name}/_emulator/live") for name in ("one", "two")][-1]

    explanations = [why(limited, id_of(each)) for each in (rate, quota, namespace)]

    assert ["gaps: Limits", "W10", "docs: Namespaces"] == [each["rule"] for each in explanations]
    assert explanations[0]["needed"].startswith("a wait of ")
    assert ["at most 1 ids", "fewer than 1"] == [each["needed"] for each in explanations[1:]]


# Roles on the socket


SOCKET_RULES = {"state": "S1", "config": "S1", "poll": "P4", "": "B1", "transaction": "gaps: Purchases"}
SOCKET_RULES |= {"twitchPurchaseBits": "gaps: Purchases", "datastream": "spec: Authentication"}
"""The rule about the roles of each target."""


@pytest.mark.parametrize("row", [row for row in SOCKET_ROWS if row.roles < set(ROLES)], ids=name_of)
def test_a_refused_role_on_the_socket_is_explained(row: SocketRow, live: LiveServer):
    write_defaults(live.client("admin", user="777", channel="777"))
    for role in (role for role in ROLES if role not in row.roles):
        with SocketClient(live) as game:
            game.data("authenticate", data=jwt_of(authorization(role)))
            assert 403 == game.error(row.action, row.target, row.data)["status"]
            explanation = latest(live)["explanation"]

        allowed = any_of(row.roles)
        is_shared = role == "broadcaster" and str(row.data.get("poll_id", "")).startswith("global-")
        assert ("A4" if is_shared else SOCKET_RULES[row.target]) == explanation["rule"]
        assert explanation["held"].startswith(f"role {role}")
        assert allowed in explanation["needed"]
