"""Calls of the service API as any caller: `POST /_emulator/call`, and the forms of the control API."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from emulator.control.calls import MAX_RESPONSE
from emulator.core.callers import Caller, Role
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


def test_a_refused_call_returns_its_own_status(call):
    answer = call("GET", "/v1/e/vote_logs", role="viewer")

    assert (403, "role is not authorized") == (answer["status"], answer["body"]["reason"])


def test_a_text_is_sent_unchanged(call):
    assert "Malformed json body" == call("POST", "/v1/e/vote", "{not json")["body"]["reason"]
    assert 200 == call("POST", "/v1/e/vote", '{"value": 1}')["status"]


@pytest.mark.slow
def test_the_beginning_of_a_long_response_is_returned_with_a_note(call, live: LiveServer):
    async def fill() -> None:
        caller = Caller(CLIENT_ID, Role.ADMIN, CHANNEL, None, "A-admin")
        body = b'"%b"' % (b"x" * 250)
        run = live.service.dispatcher.run_as
        await asyncio.gather(*(run("POST", "/v1/e/accumulate", caller, {}, body) for _ in range(3_200)))

    live.run(fill())

    answer = call("GET", "/v1/e/accumulate", role="admin")

    assert MAX_RESPONSE == len(answer["body"])
    assert f"longer than {MAX_RESPONSE:,} bytes" in answer["note"]


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"path": "/_emulator/reset"}, 400, "path"),
        ({"path": "/v1/e/nothing"}, 404, "/v1/e/nothing"),
        ({"client_id": "a b"}, 400, "client_id"),
        ({"role": "owner"}, 400, "role"),
    ],
)
def test_an_invalid_call_is_refused_with_the_field(stranger: Client, change: dict[str, str], status: int, field: str):
    answer = stranger.post("/_emulator/call", json={"path": "/v1/e/vote", "client_id": CLIENT_ID, **change})

    assert (status, True) == (answer.status_code, field in answer.json()["info"])


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


def test_a_form_has_its_fields_in_the_declared_types(stranger: Client):
    moved = stranger.post("/_emulator/clock", data={"set": "1000", "freeze": "true", "advance": ""}).json()
    refused = [
        stranger.post("/_emulator/clock", content=each, headers=BY_FORM).status_code for each in ("set=soon", "freeze")
    ]

    assert (1000, True, [400, 400]) == (moved["now"], moved["frozen"], refused)


def test_a_form_has_members_of_an_object_as_fields(stranger: Client):
    call = {"method": "POST", "path": "/v1/e/broadcast", "client_id": CLIENT_ID, "role": "broadcaster"}
    message = {"body.target": "broadcast", "body.event": "motd", "body.user_id": "7", "body.data:json": '{"n": [1]}'}

    answer = stranger.post("/_emulator/call", data={**call, "channel_id": "7", **message})

    assert 200 == answer.raise_for_status().json()["status"]


def test_a_form_has_lists_as_lines_and_members_at_any_depth(stranger: Client, broadcaster: Client):
    call = {"method": "POST", "path": "/v1/e/vote_config", "client_id": CLIENT_ID, "role": "admin"}
    config = {"body.config.prompt": "Which?", "body.config.options:lines": "Rock\r\n\r\nPaper, thin"}

    answer = stranger.post("/_emulator/call", data={**call, "channel_id": CHANNEL, **config})

    defined = broadcaster.get("vote_config").json()
    assert (200, "Which?", ["Rock", "Paper, thin"]) == (
        answer.json()["status"], defined["prompt"], defined["options"],
    )  # fmt: skip


def test_a_form_has_lists_of_one_entry(stranger: Client, broadcaster: Client):
    call = {"method": "POST", "path": "/v1/e/json_store?id=x", "client_id": CLIENT_ID, "role": "admin"}
    lists = {"body.text:list": "7", "body.json:json:list": "7", "body.lines:lines:list": "a\nb"}

    assert 200 == stranger.post("/_emulator/call", data={**call, **lists, "channel_id": CHANNEL}).json()["status"]
    stored = broadcaster.get("json_store?id=x").json()
    assert {"text": ["7"], "json": [7], "lines": [["a", "b"]]} == stored


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"body.data:json": "{"}, "body.data: "),
        ({"body": "{}", "body.data": "1"}, "body: "),
        ({"body.data": "1", "body": "{}"}, "body: "),
        ({"body.a": "1", "body.a.b": "1"}, "body.a: "),
    ],
)
def test_a_form_with_invalid_json_or_a_member_given_twice_is_refused(stranger: Client, fields, field: str):
    answer = stranger.post("/_emulator/call", data={"path": "/v1/e/vote", "client_id": CLIENT_ID, **fields})

    assert (400, True) == (answer.status_code, answer.json()["info"].startswith(field))


@pytest.mark.parametrize("body", ['{"freeze": true}', '"{\\"freeze\\": true}"'])
def test_json_with_the_content_type_of_a_form_is_json(stranger: Client, body: str):
    assert stranger.post("/_emulator/clock", content=body, headers=BY_FORM).raise_for_status().json()["frozen"]


@pytest.mark.parametrize("hides_origin", [False, True])
def test_a_form_on_a_page_of_the_service_is_accepted(live: LiveServer, stranger: Client, hides_origin: bool):
    headers = {"origin": "null" if hides_origin else live.url, "sec-fetch-site": "same-origin"}

    assert 200 == stranger.post("/_emulator/clock", data={"freeze": "true"}, headers=headers).status_code
