"""`GET /_emulator/explain`: its responses, its parameters, and what it leaves out."""

from __future__ import annotations

import httpx
import jwt
import pytest

from emulator.contract import rules
from support.explanations import id_of, why
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer
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
    assert "A1" in answer.json()["info"].rpartition("nearest rules are ")[2].split(", ") or "x7" in query


def test_a_rule_is_read_by_its_name(stranger: Client):
    rule = stranger.get("/_emulator/explain?rule=a1").json()["rule"]

    assert ("A1", rules.rules()["A1"]["text"]) == (rule["id"], rule["text"])


def test_explanations_are_not_recorded(live: LiveServer, stranger: Client):
    stranger.get("/_emulator/explain?rule=A1")
    stranger.get("/_emulator/explain?rule=nothing")

    assert [] == stranger.get("/_emulator/journal?path=explain").json()["entries"]


def test_an_explanation_shows_no_token(live: LiveServer, stranger: Client):
    secret = jwt.encode({"role": "viewer", "exp": 1}, SECRET)
    answer = live.bearer(secret).get("vote", params={"id": secret})

    assert secret not in stranger.get("/_emulator/explain", params={"id": id_of(answer)}).text
    assert secret not in stranger.get("/_emulator/explain").text


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
