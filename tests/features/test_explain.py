"""`GET /_emulator/explain`: its responses, its parameters, and what it leaves out."""

from __future__ import annotations

import httpx
import jwt
import pytest

from emulator.control.explanations import texts
from support.explanations import id_of, why
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer
from support.socket_client import SocketClient


def test_a_request_that_was_not_refused_has_no_explanation(live: LiveServer, viewer):
    answer = viewer().get("vote")

    with Client(base_url=live.url) as client:
        found = client.get("/_emulator/explain", params={"id": id_of(answer)}).json()

    assert "explanation" not in found
    assert ("GET /v1/e/vote", 200, "viewer", CLIENT_ID, CHANNEL) == tuple(
        found["entry"][name] for name in ("name", "status", "role", "client_id", "channel_id")
    )


def test_the_response_about_a_refusal_has_its_rule(live: LiveServer, stranger: Client, viewer):
    answer = viewer().delete("vote")

    found = stranger.get("/_emulator/explain", params={"id": id_of(answer)}).json()

    assert "spec: Authentication" == found["rule"]["id"] == found["explanation"]["rule"]


def test_an_entry_is_also_explained_by_its_number(live: LiveServer, stranger: Client, viewer):
    answer = viewer().delete("vote")
    (entry,) = stranger.get("/_emulator/journal", params={"id": id_of(answer)}).json()["entries"]

    assert why(live, id_of(answer)) == why(live, str(entry["number"]))


def test_the_verdict_of_production_is_explained(live: LiveServer, stranger: Client):
    answer = live.client("viewer", user="1", channel=CHANNEL).get("vote")  # without exp

    found = stranger.get("/_emulator/explain", params={"id": id_of(answer)}).json()

    assert ("refuse", "exp") == (found["production"]["verdict"], found["production"]["rule"])
    assert texts.rules()["exp"].next_step == found["production"]["next_step"]


def test_the_journal_has_the_rule_and_the_next_step_of_a_refusal(live: LiveServer, stranger: Client, viewer):
    viewer().delete("vote")

    (entry,) = stranger.get("/_emulator/journal?status=403").json()["entries"]

    assert "spec: Authentication" == entry["rule"]
    assert "Send a token of the role broadcaster (with extcli: `--as broadcaster`)." == entry["next_step"]


def test_without_a_refusal_the_response_is_empty(stranger: Client):
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


def test_a_successful_call_has_no_code(viewer):
    assert "x-emulator-code" not in viewer().get("vote").headers
