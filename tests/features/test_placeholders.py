"""Ids that are placeholders have a hint in the sandbox: variables without a value, templates that were not filled."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import jwt
import pytest

from emulator.core.hints import placeholder_hint
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer

PLACEHOLDERS = [
    *("undefined", "NULL", "NaN", "None", "nil", "(null)", "Uundefined", "poll-undefined", "undefined-boss"),
    *("round_null", "${CLIENT_ID}", "$CLIENT_ID", "$channelId", "$(id)", "boss-${id}", "%s", "%(id)s", "%CLIENT_ID%"),
    *("#{id}", "{{ id }}", "<client-id>", "YOUR_CLIENT_ID", "yourClientId", "CLIENT_ID", "channel-id", ":channelId"),
    *("[CLIENT_ID]", "{channel}", "[object Object]", "boss:[object Object]", "[object Promise]", "{}", "{0}"),
    *("xxxxx", "changeme", "global-undefined"),
]
NAMES = [
    *("boss", "none", "nullable", "undefined2", "my-extension", "annul", "Nanna", "Nil", "user", "default", "id"),
    *("$", "$1", "$boss", "$A1-b", "$idea", "a$b", "100%", "%", "%cool", ":a:", "a<b", "rock:paper", "question[1]"),
    *("your-game-of-the-year", "yourself", "1001", "U1", "A-1", "global-round", "change-me-up", "xx", "x", "client"),
]
END = "looks like a placeholder; replace it with the value"


def test_a_variable_or_a_template_in_place_of_a_value_is_a_placeholder():
    assert [f"the poll {text} {END}" for text in PLACEHOLDERS] == [
        placeholder_hint("poll", each) for each in PLACEHOLDERS
    ]


def test_a_name_that_was_chosen_is_no_placeholder():
    assert [] == [text for text in NAMES if placeholder_hint("poll", text)]


def hint_of(answer: httpx.Response) -> str | None:
    return answer.headers.get("x-emulator-hint")


def header(client_id: str = CLIENT_ID, **claims: str) -> dict[str, str]:
    token = jwt.encode({"role": "admin", "channel_id": CHANNEL, "exp": 2 * 10**9, **claims}, SECRET, "HS256")
    return {"Authorization": f"{client_id} {token}"}


@pytest.mark.parametrize("client_id", ["undefined", "${CLIENT_ID}"])
def test_a_placeholder_as_client_id_has_a_hint_at_each_request(stranger: Client, client_id: str):
    answers = [stranger.get("/v1/e/vote", headers=header(client_id)) for _ in range(3)]

    assert [f"the client id {client_id} {END}"] * 3 == [hint_of(each) for each in answers]
    assert [200] * 3 == [each.status_code for each in answers]


@pytest.mark.parametrize(
    ("name", "what"), [("channel_id", "channel"), ("user_id", "user id"), ("opaque_user_id", "opaque user id")]
)
@pytest.mark.parametrize("text", ["undefined", "[object Object]"])
def test_a_placeholder_in_a_token_has_a_hint(stranger: Client, name: str, what: str, text: str):
    answers = [stranger.get("/v1/e/vote", headers=header(**{name: text})) for _ in range(2)]
    unusual = stranger.get("/v1/e/vote", headers=header(**{name: text}, allowed_stage="x"))

    assert [f"the {what} {text} {END}"] * 3 == [hint_of(each) for each in (*answers, unusual)]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "vote?id=", None), ("POST", "vote?id=", {"value": 1}), ("DELETE", "vote?id=", None),
        ("GET", "rank?id=", None), ("GET", "accumulate?id=", None), ("GET", "json_store?id=", None),
        ("POST", "rank?id=", {"key": "a"}), ("POST", "accumulate?id=", {}), ("GET", "vote?channel_id=", None),
        ("GET", "all_state?user_id=", None), ("POST", "vote_config", "body"),
    ],
)  # fmt: skip
def test_a_placeholder_as_id_has_a_hint(admin: Client, method: str, path: str, body: object):
    admin.get("vote")  # the next request may take the short way
    for text in ("undefined", "$CLIENT_ID"):
        sent = {"id": text, "config": {}} if body == "body" else body
        answer = admin.request(method, path + (quote(text) if "=" in path else ""), json=sent)

        assert (hint_of(answer) or "").endswith(f" {text} {END}")


@pytest.mark.parametrize(
    ("member", "text", "what"),
    [
        ("target", "whisper-undefined", "user undefined"),
        ("event", "undefined", "event undefined"),
        ("user_id", "null", "channel null"),
    ],
)
def test_a_placeholder_in_a_broadcast_has_a_hint(admin: Client, member: str, text: str, what: str):
    message = {"target": "broadcast", "event": "a", "user_id": CHANNEL, "data": {}}

    assert f"the {what} {END}" == hint_of(admin.post("broadcast", json={**message, member: text}))


def test_a_placeholder_as_namespace_has_a_hint_when_it_is_created(stranger: Client):
    answers = [stranger.get("/_ns/undefined/v1/e/vote", headers=header()) for _ in range(2)]

    assert [f"the namespace undefined {END}", None] == [hint_of(each) for each in answers]


def test_production_gives_no_hint_about_placeholders(production: LiveServer):
    with Client(base_url=production.url) as client:
        answer = client.get("/v1/e/vote?id=undefined", headers=header(channel_id="undefined"))

    assert (200, None) == (answer.status_code, hint_of(answer))
