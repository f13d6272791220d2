"""The role table, checked cell by cell against a running service: status, explanation and audit line.

Rulings A1, A4, B1, C1, P3, S1, S5, W6.
"""

from __future__ import annotations

import pytest

from emulator.contract import rules
from support.audit_lines import AuditLines
from support.explanations import id_of, why
from support.role_table import (
    AUDIT_LINES,
    CLIENT_ID_ROWS,
    OPEN_ROWS,
    ROLES,
    ROWS,
    Row,
    any_of,
    each,
    write_defaults,
)
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer


@pytest.fixture
def by_role(row: Row, live: LiveServer) -> dict[str, Client]:
    """A client of each role in one channel that has the default records of a row."""
    clients = {role: live.client(role, user=CHANNEL, channel=CHANNEL) for role in ROLES}
    write_defaults(clients["admin"], row)
    if row.name == "pin":  # there must be a link
        clients["broadcaster"].post("link/pin").raise_for_status()
    return clients


def test_the_table_lists_every_endpoint(stranger: Client):
    paths = stranger.get("/schema/openapi.json").json()["paths"]

    declared = {(method.upper(), path) for path, operations in paths.items() for method in operations}

    listed = {(row.method, f"/v1/e/{row.path}") for row in ROWS}
    listed |= {(row.method, row.path) for row in CLIENT_ID_ROWS + OPEN_ROWS}
    assert listed == declared
    assert AUDIT_LINES.keys() <= {f"{row.method} {row.name}" for row in (*ROWS, *CLIENT_ID_ROWS, *OPEN_ROWS)}


@each(ROWS)
def test_the_role_decides_the_status_the_explanation_and_the_audit_line(
    row: Row, live: LiveServer, by_role: dict[str, Client], audit: AuditLines
):
    replies, logged = {}, {}
    for role in ROLES:
        audit.records.clear()
        replies[role] = row.call(by_role[role])
        logged[role] = audit.texts
    with Client(base_url=f"{live.url}/v1/e/") as client:
        stranger = row.call(client)

    assert {role: row.success if role in row.roles else 403 for role in ROLES} == {
        role: reply.status_code for role, reply in replies.items()
    }
    for role in set(ROLES).difference(row.roles):
        explanation = why(live, id_of(replies[role]))
        assert row.rule(role) == explanation["rule"]
        assert explanation["held"].startswith(f"role {role}")
        assert any_of(row.roles) in explanation["needed"]
        assert "--as " in explanation["next_step"]
        assert rules.rules()[explanation["rule"]]["text"] == explanation["text"]
        assert [] == logged[role]
    first = next(role for role in ROLES if role in row.roles)
    who = f"client {CLIENT_ID}, {first}, channel {CHANNEL}, user U{CHANNEL}"
    assert logged[first] == ([f"{row.audit_line}; {who}"] if row.audit_line else [])
    assert 401 == stranger.status_code
    assert "spec: Authentication" == why(live, id_of(stranger))["rule"]


@each(CLIENT_ID_ROWS + OPEN_ROWS)
def test_open_endpoints_need_no_credential_and_write_their_audit_line(row: Row, stranger: Client, audit: AuditLines):
    stranger.get("/_emulator/clock")  # an entry for the journal

    answer = row.call(stranger)

    assert 200 == answer.status_code
    if row.name == "/_emulator/undo":
        assert "data reset: 60 seconds to undo; operator" == audit.texts[0]
    line = row.audit_line.replace("NOW", str(answer.json()["now"]) if "NOW" in row.audit_line else "")
    assert audit.texts[-1:] == ([f"{line}; operator"] if line else [])


@each(OPEN_ROWS[::4])
def test_open_endpoints_ignore_a_bad_credential(row: Row, stranger: Client):
    stranger.headers["Authorization"] = f"{CLIENT_ID} no.such.token"
    stranger.get("/_emulator/clock")  # an entry for the journal

    assert 200 == row.call(stranger).status_code
