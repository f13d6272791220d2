"""Calls of the service API as any caller: `POST /_emulator/call`, and the forms of the control API."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import jwt
import pytest

from emulator.callers import Caller, Role
from emulator.control.calls.rules import MAX_RESPONSE
from support.role_table import ROWS, Row, each
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer

BY_FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def call(stranger: Client):
    """Make a call as a viewer of channel 777, or as another caller."""

    def make(method: str, path: str, body: Any = None, **caller: str) -> dict[str, Any]:
        call = {"method": method, "path": path, "body": body, "client_id": CLIENT_ID, "channel_id": CHANNEL, **caller}
        return dict(stranger.post("/_emulator/call", json=call).raise_for_status().json())

    return make


def test_a_call_has_its_effect_as_the_named_user(call, admin: Client):
    answer = call("POST", "/v1/e/vote?id=rps", {"value": 2}, user_id="5551")

    assert (200, 1) == (answer["status"], answer["body"]["count"])
    assert {"5551"} == {vote["identifier"] for vote in admin.get("vote_logs?id=rps").json()["result"]}


def test_a_call_has_the_opaque_id_that_it_names(call, admin: Client):
    call("POST", "/v1/e/vote", {"value": 2}, opaque_user_id="Aabc")

    assert ["Aabc"] == [vote["identifier"] for vote in admin.get("vote_logs").json()["result"]]


def test_a_refused_call_returns_its_own_status(call):
    answer = call("GET", "/v1/e/vote_logs", role="viewer")

    assert (403, "role is not authorized") == (answer["status"], answer["body"]["reason"])


@each(ROWS[:4])
def test_the_table_of_roles_holds_for_calls(call, row: Row):
    for role in ("viewer", "broadcaster", "admin", "backend"):
        status = call(row.method, f"/v1/e/{row.name}", row.body, role=role, user_id="5")["status"]

        assert (role in row.roles) is (status != 403), role


def test_a_text_is_sent_unchanged(call):
    assert "Malformed json body" == call("POST", "/v1/e/vote", "{not json")["body"]["reason"]
    assert 200 == call("POST", "/v1/e/vote", '{"value": 1}')["status"]


def test_a_call_reaches_endpoints_that_stream(call, admin: Client):
    answer = call("PUT", "/v1/e/codes", {"codes": [["HAT-1", "HAT-2"]], "names": ["Hat"]}, role="admin")

    assert 200 == answer["status"]
    assert [2] == admin.get("codes").json()["left"]


def test_a_streamed_response_is_returned_whole(call, viewer):
    viewer("1").post("vote", json={"value": 3})

    assert [3] == [vote["value"] for vote in call("GET", "/v1/e/vote_logs", role="admin")["body"]["result"]]


@pytest.mark.slow
def test_the_beginning_of_a_long_response_is_returned_with_a_note(call, live: LiveServer):
    async def fill() -> None:
        caller = Caller(CLIENT_ID, Role.ADMIN, CHANNEL, None, "A-admin")
        await asyncio.gather(*(live.service.buffers.add(caller, CHANNEL, "default", "x" * 250) for _ in range(5_000)))

    live.run(fill())

    answer = call("GET", "/v1/e/accumulate", role="admin")

    assert MAX_RESPONSE == len(answer["body"])
    assert f"longer than {MAX_RESPONSE:,} bytes" in answer["note"]


def test_calls_succeed_under_the_alias_of_a_path(call):
    assert 200 == call("GET", "/v1/e//vote/?id=x")["status"]


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"path": "/_emulator/reset"}, "path: '/_emulator/reset' is not a path of the service API"),
        ({"client_id": "a b"}, "client_id: 'a b' is not 1 to 100 printable characters"),
        ({"role": "owner"}, "role: invalid enum value 'owner'"),
    ],
)
def test_an_invalid_call_is_refused_with_the_field(stranger: Client, change: dict[str, str], detail: str):
    answer = stranger.post("/_emulator/call", json={"path": "/v1/e/vote", "client_id": CLIENT_ID, **change})

    assert 400 == answer.status_code
    assert detail in answer.json()["info"]


def test_a_call_of_an_unknown_path_is_not_found(stranger: Client):
    answer = stranger.post("/_emulator/call", json={"path": "/v1/e/nothing", "client_id": CLIENT_ID})

    assert (404, "there is no GET /v1/e/nothing") == (answer.status_code, answer.json()["info"])


def test_the_journal_has_the_call_itself_under_the_id_of_the_request(call, live: LiveServer):
    answer = call("POST", "/v1/e/vote?id=rps", {"value": 2}, role="broadcaster", user_id="7")
    entry = live.service.journal.newest()[0]

    assert ("POST /v1/e/vote", answer["request_id"], 200) == (entry.name, entry.id, entry.status)
    assert entry.caller is not None
    assert ("broadcaster", CHANNEL, "7") == (entry.caller.role, entry.caller.channel_id, entry.caller.user_id)
    assert "" == entry.production


def test_the_token_of_a_call_appears_nowhere(call, live: LiveServer, caplog: pytest.LogCaptureFixture):
    answers = [call("GET", f"/v1/e/{path}", role="admin") for path in ("user_info", "vote?value=x", "pin_token_exists")]
    entries = [repr(entry) for entry in live.service.journal.newest()]

    assert not re.search("eyJ", json.dumps(answers) + "".join(entries) + caplog.text)


def test_calls_follow_the_moved_clock(call, live: LiveServer):
    for change in ({"advance": 10**10}, {"set": 1_000_000_000_000}):
        live._http.post("/_emulator/clock", json=change).raise_for_status()

        assert 200 == call("GET", "/v1/e/user_info")["status"]


def test_production_has_no_calls(production: LiveServer):
    with Client(base_url=production.url) as client:
        assert 404 == client.post("/_emulator/call", json={}).status_code


def test_a_form_makes_a_call(stranger: Client):
    call = {"method": "POST", "path": "/v1/e/vote", "body": '{"value": 1}', "client_id": CLIENT_ID, "user_id": ""}

    assert 200 == stranger.post("/_emulator/call", data=call).raise_for_status().json()["status"]


def test_a_form_has_its_fields_in_the_declared_types(stranger: Client):
    moved = stranger.post("/_emulator/clock", data={"set": "1000", "freeze": "true", "advance": ""}).json()

    assert (1000, True) == (moved["now"], moved["frozen"])


def test_a_form_has_members_of_an_object_as_fields(stranger: Client, broadcaster: Client):
    call = {
        "method": "POST",
        "path": "/v1/e/broadcast",
        "client_id": CLIENT_ID,
        "role": "broadcaster",
        "channel_id": "7",
    }
    message = {"body.target": "broadcast", "body.event": "motd", "body.user_id": "7", "body.data:json": '{"n": [1]}'}

    assert 200 == stranger.post("/_emulator/call", data=call | message).raise_for_status().json()["status"]


def test_a_form_has_lists_as_lines_and_members_at_any_depth(stranger: Client, broadcaster: Client):
    call = {
        "method": "POST",
        "path": "/v1/e/vote_config",
        "client_id": CLIENT_ID,
        "role": "admin",
        "channel_id": CHANNEL,
    }
    config = {"body.config.prompt": "Which?", "body.config.options:lines": "Rock\r\n\r\nPaper, thin"}

    assert 200 == stranger.post("/_emulator/call", data=call | config).json()["status"]
    defined = broadcaster.get("vote_config").json()
    assert ("Which?", ["Rock", "Paper, thin"]) == (defined["prompt"], defined["options"])


def test_a_form_has_lists_of_one_entry(stranger: Client, broadcaster: Client):
    call = {"method": "POST", "path": "/v1/e/json_store?id=x", "client_id": CLIENT_ID, "role": "admin"}
    lists = {"body.text:list": "7", "body.json:json:list": "7", "body.lines:lines:list": "a\nb"}

    assert 200 == stranger.post("/_emulator/call", data={**call, **lists, "channel_id": CHANNEL}).json()["status"]
    stored = broadcaster.get("json_store?id=x").json()
    assert {"text": ["7"], "json": [7], "lines": [["a", "b"]]} == stored


@pytest.mark.parametrize(
    ("fields", "info"),
    [
        ({"body.data:json": "{"}, "body.data: '{' is not JSON; a text has double quotes"),
        ({"body": "{}", "body.data": "1"}, "body: the form has both body and body.data; send one of them"),
        ({"body.data": "1", "body": "{}"}, "body: the form has it twice, as a whole or in parts; send it once"),
        ({"body.a": "1", "body.a.b": "1"}, "body.a: the form has both body.a and body.a.b; send one of them"),
    ],
)
def test_a_form_with_invalid_json_or_a_member_given_twice_is_refused(
    stranger: Client, fields: dict[str, str], info: str
):
    answer = stranger.post("/_emulator/call", data={"path": "/v1/e/vote", "client_id": CLIENT_ID, **fields})

    assert (400, info) == (answer.status_code, answer.json()["info"])


def test_a_field_of_a_form_with_a_wrong_type_is_named(stranger: Client):
    answer = stranger.post("/_emulator/clock", data={"set": "tomorrow"})

    assert 400 == answer.status_code
    assert answer.json()["info"].startswith("set: ")


@pytest.mark.parametrize("body", ['{"freeze": true}', '"{\\"freeze\\": true}"'])
def test_json_with_the_content_type_of_a_form_is_json(stranger: Client, body: str):
    assert stranger.post("/_emulator/clock", content=body, headers=BY_FORM).raise_for_status().json()["frozen"]


def test_a_form_without_an_equals_sign_is_malformed_json(stranger: Client):
    assert 400 == stranger.post("/_emulator/clock", content="freeze", headers=BY_FORM).status_code


def test_clients_of_the_service_send_no_forms(viewer):
    assert 400 == viewer().post("vote", data={"value": "1"}).status_code


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://evil.example", "sec-fetch-site": "same-origin"},
        {"origin": "null"},
        {"origin": "null", "sec-fetch-site": "cross-site"},
        {"origin": "null", "sec-fetch-site": "same-site"},
        {"origin": "null", "sec-fetch-site": "none"},
        {"sec-fetch-site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["/_emulator/call", "/_emulator/clock", "/_emulator/reset"])
def test_a_form_on_a_page_of_another_origin_is_refused(stranger: Client, path: str, headers: dict[str, str]):
    assert 403 == stranger.post(path, data={"freeze": "true"}, headers=headers).status_code


@pytest.mark.parametrize("hides_origin", [False, True])
def test_a_form_on_a_page_of_the_service_is_accepted(live: LiveServer, stranger: Client, hides_origin: bool):
    headers = {"origin": "null" if hides_origin else live.url, "sec-fetch-site": "same-origin"}

    assert 200 == stranger.post("/_emulator/clock", data={"freeze": "true"}, headers=headers).status_code


def test_tokens_that_calls_made_are_for_the_sandbox(live: LiveServer):
    token = live.service.tokens.issue(1000, role="viewer")

    assert "sandbox" == jwt.decode(token, options={"verify_signature": False})["allowed_stage"]
