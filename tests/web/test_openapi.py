"""The OpenAPI document is valid, complete and correct; its viewer loads only local files (ruling W3)."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from support.role_table import CLIENT_ID_ROWS, OPEN_ROWS, ROWS, write_defaults
from support.service import CHANNEL, Client, LiveServer

pytestmark = pytest.mark.slow

ENDPOINTS = {
    (row.method, row.path if row.path.startswith("/") else f"/v1/e/{row.path}"): row
    for row in (*(row for row in ROWS if "?id=global-x" not in row.name), *CLIENT_ID_ROWS, *OPEN_ROWS)
}
FULLER = {
    ("POST", "/v1/e/vote_config"): '{"config": {"prompt": "Which boss?", "options": ["Dragon", "Golem"]}}',
    ("POST", "/v1/e/authtoken"): '{"app_id": "x", "channel_id": 7, "user_ids": ["1", 2], "role": "viewer"}',
    ("POST", "/v1/e/broadcast"): '{"event": "e", "data": {"a": 1}, "target": "broadcast"}',
    ("PUT", "/v1/e/codes"): '{"codes": [["A1", "A2"]], "names": ["Hat"]}',
    ("POST", "/v1/e/codes/mark_from_list"): '{"prizes": [0], "prize_limits": [1], "users": ["9001"]}',
    ("POST", "/v1/e/curated_poll_edit"): '{"id": "default", "name": "Which boss?", "order": 1.5}',
    ("POST", "/v1/e/curated_poll_edit_option"): '{"id": "default", "option": {"id": "o1", "image": "o1.png"}}',
    ("POST", "/v1/e/curated_poll_state"): '{"transition": "state-unlocked"}',
    ("POST", "/_emulator/clock"): '{"advance": 90000000}',
    **{
        (method, f"/v1/e/{store}"): body
        for store in ("extension_state", "channel_state", "viewer_state", "extension_viewer_state",
                      "extension_hidden_state", "extension_config", "channel_config")
        for method, body in (("POST", '{"a": {}}'), ("PATCH", '[{"op":"add","path":"/c","value":1}]'))
    },
}  # fmt: skip
"""Bodies with more members than the bodies of the role table."""
CALLS = {place: row._replace(body=FULLER.get(place, row.body)) for place, row in ENDPOINTS.items()}


@pytest.fixture(scope="module")
def document(running_live: LiveServer) -> dict[str, Any]:
    return dict(httpx.get(f"{running_live.url}/schema/openapi.json").raise_for_status().json())


@pytest.fixture
def filled(live: LiveServer) -> Client:
    """An admin of a service with some data behind every endpoint."""
    admin = live.client("admin", user="9001", channel=CHANNEL)
    write_defaults(admin)
    for row in CALLS.values():
        if row.method in ("POST", "PATCH", "PUT") and "admin" in row.roles:
            row.call(admin).raise_for_status()
    return admin


def schema_of(document: dict[str, Any], content: dict[str, Any]) -> Draft202012Validator:
    (media,) = content.values()
    return Draft202012Validator({**media["schema"], "components": document["components"]})


def errors(validator: Draft202012Validator, instance: object) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(instance)]


@pytest.mark.long
def test_the_document_is_valid_openapi_3_1(document: dict[str, Any]):
    assert document["openapi"].startswith("3.1.")
    assert [] == [str(error) for error in OpenAPIV31SpecValidator(document).iter_errors()]


def test_every_response_matches_the_document(
    document: dict[str, Any], filled: Client, broadcaster: Client, stranger: Client
):
    wrong = {}
    for method, path in sorted(CALLS, key=lambda call: (call[0] == "DELETE", call[0] != "GET")):
        row = CALLS[method, path]
        answer = row.call(stranger if not row.roles else filled if "admin" in row.roles else broadcaster)
        if found := deviations(document, answer, document["paths"][path][method.lower()]["responses"]):
            wrong[method, path] = found

    assert {} == wrong


def deviations(document: dict[str, Any], answer: httpx.Response, responses: dict[str, Any]) -> list[str]:
    """How a response differs from the document."""
    (success,) = {"200", "201"} & responses.keys()
    documented = responses[success]["content"]
    content_type = answer.headers["content-type"].split(";")[0]
    if str(answer.status_code) != success or content_type not in documented:
        return [f"{answer.status_code} {content_type}"]
    return errors(schema_of(document, documented), answer.json()) if content_type == "application/json" else []


def test_every_accepted_body_matches_the_document(document: dict[str, Any]):
    wrong = {}
    for (method, path), row in CALLS.items():
        operation = document["paths"][path][method.lower()]
        assert bool(row.content) == ("requestBody" in operation), (method, path)
        if row.content:
            validator = schema_of(document, operation["requestBody"]["content"])
            if found := errors(validator, json.loads(row.content)):
                wrong[method, path] = found

    assert {} == wrong


ERRORS = [
    ("GET", "/v1/e/vote", 401), ("GET", "/v1/e/vote_logs", 403), ("POST", "/v1/e/vote", 400),
    ("POST", "/v1/e/rank", 413), ("GET", "/v1/e/json_store", 404), ("GET", "/v1/e/vote_config", 404),
    ("POST", "/v1/e/authtoken", 400), ("POST", "/_emulator/clock", 400), ("POST", "/_emulator/reset", 403),
]  # fmt: skip


def test_every_error_matches_the_document(document: dict[str, Any], live: LiveServer, stranger: Client, viewer):
    for method, path, status in ERRORS:
        client = stranger if status == 401 or path.startswith("/_") else viewer()
        origin = {"Origin": "https://page.example"} if status == 403 else {}
        body = b" " * 70_000 if status == 413 else b"{"
        answer = client.request(method, f"{live.url}{path}", content=body, headers=origin)

        responses = document["paths"][path][method.lower()]["responses"]
        described = responses.get(str(status)) or responses["default"]
        assert status == answer.status_code
        assert [] == errors(schema_of(document, described["content"]), answer.json())


def test_the_document_requires_a_credential_where_the_role_table_has_roles(document: dict[str, Any]):
    documented = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if operation["security"] and {} not in operation["security"]
    }

    assert {place for place, row in CALLS.items() if row.roles} == documented


def test_the_viewer_loads_only_local_files(stranger: Client):
    for page in ("/schema", "/schema/docs"):
        html = stranger.get(page).raise_for_status().text
        references = re.findall(r"""(?:src|href|url)\s*[=:]\s*["']?([^"'\s>,]+)""", html)
        own = [each for each in references if each.startswith("/schema/")]
        assert [] == re.findall(r"https?://[^\s\"']+", html)
        assert [] == [each for each in references if each.startswith("//")]
        assert [200] * len(own) == [stranger.get(each).status_code for each in own]
        assert {"/schema/swagger-ui-bundle.js", "/schema/swagger-ui.css"} <= set(own)
    for name, content_type in (("swagger-ui-bundle.js", "text/javascript"), ("swagger-ui.css", "text/css")):
        answer = stranger.get(f"/schema/{name}")
        assert (200, content_type) == (answer.status_code, answer.headers["content-type"].split(";")[0])
        assert len(answer.content) > 1_000
        assert not re.search(rb"""@import\s|url\(["']?https?:""", answer.content)


def test_the_document_of_production_omits_sandbox_endpoints(production: LiveServer):
    paths = httpx.get(f"{production.url}/schema/openapi.json").json()["paths"]

    assert {"/_emulator/live", "/_emulator/ready", "/_emulator/metrics"} == {
        path for path in paths if not path.startswith("/v1/e/")
    }
    assert "/v1/e/authtoken" not in paths


@pytest.mark.parametrize(
    "path", ["", "/docs", "/openapi.json", "/viewer.js", "/swagger-ui-bundle.js", "/swagger-ui.css"]
)
def test_the_policy_forbids_framing_and_other_origins(stranger: Client, path: str):
    headers = stranger.get(f"/schema{path}").raise_for_status().headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))

    assert ("'none'", "'self'", "'none'") == (
        policy["default-src"],
        policy["script-src"],
        policy["frame-ancestors"],
    )
    assert ("DENY", "nosniff", "no-referrer", "same-origin") == (
        headers["x-frame-options"],
        headers["x-content-type-options"],
        headers["referrer-policy"],
        headers["cross-origin-resource-policy"],
    )
