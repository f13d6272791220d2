"""The role table, checked cell by cell against a running service: status and explanation.

`pytest -s tests/features/test_roles.py` prints the status that the service returns in each cell.
"""

from __future__ import annotations

import pytest

from emulator.control.explanations import texts
from support.explanations import id_of, why
from support.role_table import CLIENT_ID_ROWS, OPEN_ROWS, ROLES, ROWS, Row, any_of, each, write_defaults
from support.service import CLIENT_ID, Client, LiveServer

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


def rule_of(row: Row, role: str) -> str:
    if (
        "?id=global-x" in row.name
        and role == "broadcaster"
        and row.path in ("vote", "vote_config", "rank", "json_store")
    ):
        return "A4"
    return next(rule for rule, names in ROLE_RULES.items() if row.path in names.split())


@pytest.fixture
def by_role(row: Row, live: LiveServer) -> dict[str, Client]:
    """A client of each role in one channel that has the default records of a row."""
    clients = {role: live.client(role, user="777", channel="777") for role in ROLES}
    write_defaults(clients["admin"], row)
    return clients


def test_the_table_lists_every_endpoint(stranger: Client):
    paths = stranger.get("/schema/openapi.json").json()["paths"]

    declared = {(method.upper(), path) for path, operations in paths.items() for method in operations}

    listed = {(row.method, f"/v1/e/{row.path}") for row in ROWS}
    listed |= {(row.method, row.path) for row in CLIENT_ID_ROWS + OPEN_ROWS}
    assert listed == declared


def test_the_role_table_has_every_endpoint_with_an_id_in_both_scopes(stranger: Client):
    paths = stranger.get("/schema/openapi.json").json()["paths"]

    with_id = {
        (method.upper(), path)
        for path, operations in paths.items()
        for method, operation in operations.items()
        if path.startswith("/v1/e/") and "id" in [parameter["name"] for parameter in operation.get("parameters", ())]
    }

    assert with_id == {(row.method, f"/v1/e/{row.path}") for row in ROWS if "?id=global-x" in row.name}


@pytest.mark.ruling("A4")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "vote?id=global-zz", None),
        ("POST", "vote_config?id=global-zz", {"config": {}}),
        ("POST", "vote_config", {"id": "global-zz", "config": {"disabled": True}}),
        ("DELETE", "rank?id=global-zz", None),
        ("POST", "json_store?id=globalzz", {"a": 2}),
    ],
)
def test_a_broadcaster_cannot_change_what_all_channels_share(live, broadcaster, method, path, body):
    admin = live.client("admin", channel="888")
    admin.post("vote_config?id=global-zz", json={"config": {}})
    admin.post("vote?id=global-zz", json={"value": 3})
    admin.post("rank?id=global-zz", json={"key": "blue"})
    admin.post("json_store?id=globalzz", json={"a": 1})

    refused = broadcaster.request(method, path, json=body)

    name = "globalzz" if "json" in path else "global-zz"
    info = f"id: all channels share {name}, so the role broadcaster may not change it; allowed: admin, backend"
    assert (403, "role is not authorized", info) == (refused.status_code, *map(refused.json().get, ("reason", "info")))
    assert 1 == admin.get("vote?id=global-zz").json()["count"]
    assert not admin.get("vote_config?id=global-zz").json()["disabled"]
    assert [{"key": "blue", "score": 1}] == admin.get("rank?id=global-zz").json()["data"]
    assert {"a": 1} == admin.get("json_store?id=globalzz").json()


@each(ROWS)
@pytest.mark.ruling("A1", "A4", "B1", "C1", "P3", "S1", "S5", "W6")
def test_listed_roles_are_allowed_and_others_get_403_with_an_explanation(
    row: Row, live: LiveServer, by_role: dict[str, Client]
):
    replies = {role: row.call(by_role[role]) for role in ROLES}

    cells = "  ".join(f"{role} {reply.status_code}" for role, reply in replies.items())
    print(f"\n{row.method:6} {row.name:24} {cells}")  # noqa: T201 - for `pytest -s`
    assert {role: row.success if role in row.roles else 403 for role in ROLES} == {
        role: reply.status_code for role, reply in replies.items()
    }
    for role in set(ROLES).difference(row.roles):
        explanation = why(live, id_of(replies[role]))
        assert rule_of(row, role) == explanation["rule"]
        assert explanation["held"].startswith(f"role {role}")
        assert any_of(row.roles) in explanation["needed"]
        assert "--as " in explanation["next_step"]
        assert texts.rules()[explanation["rule"]].text == explanation["text"]


@each(ROWS)
def test_without_a_credential_every_endpoint_returns_401_with_an_explanation(row: Row, live: LiveServer):
    with Client(base_url=f"{live.url}/v1/e/") as client:
        answer = row.call(client)

    assert 401 == answer.status_code
    explanation = why(live, id_of(answer))
    assert ("spec: Authentication", "no Authorization header", "Authorization: <client id> <JWT>") == (
        explanation["rule"],
        explanation["held"],
        explanation["needed"],
    )


@each(CLIENT_ID_ROWS)
def test_endpoints_that_need_only_a_client_id_refuse_a_bad_token(row: Row, live: LiveServer):
    clients = [live.client(role, user="777", channel="777") for role in ROLES]

    statuses = [client.request(row.method, f"{live.url}{row.name}").status_code for client in clients]

    assert [200] * len(ROLES) == statuses
    bad = live.bearer("no.such.token").request(row.method, f"{live.url}{row.name}", content=row.body)
    assert 401 == bad.status_code


@each(CLIENT_ID_ROWS + OPEN_ROWS)
def test_open_endpoints_need_no_credential(row: Row, stranger: Client):
    stranger.get("/_emulator/clock")  # an entry for the journal
    assert 200 == row.call(stranger).status_code


@each(OPEN_ROWS)
def test_open_endpoints_ignore_a_bad_credential(row: Row, stranger: Client):
    stranger.headers["Authorization"] = f"{CLIENT_ID} no.such.token"
    stranger.get("/_emulator/clock")  # an entry for the journal

    assert 200 == row.call(stranger).status_code


def test_the_error_names_the_allowed_roles(viewer):
    error = viewer().delete("vote").json()

    assert "role is not authorized" == error["reason"]
    assert "the role viewer may not do this; allowed: admin, backend, broadcaster" == error["info"]


def test_a_refused_call_changes_nothing(viewer, admin):
    viewer().post("vote", json={"value": 3})
    admin.post("extension_state", json={"season": 3})

    viewer().delete("vote")
    viewer().post("extension_state", json={})

    assert 1 == viewer().get("vote").json()["count"]
    assert {"season": 3} == viewer().get("extension_state").json()
