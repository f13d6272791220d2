"""Who may call what: one table, checked cell by cell against the running service.

Written by hand from the specification's Authentication 12 and the rulings A1, A3, P3, P4, S1, S5; not from the code.
`pytest -s tests/features/test_roles.py` prints what the service really answers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jwt
import pytest

from support.service import CLIENT_ID, SECRET, Client, LiveServer

ROLES = ("viewer", "broadcaster", "admin", "backend")

# The last column is a body that the endpoint takes.
TABLE = """
GET    vote                     viewer broadcaster admin backend
POST   vote                     viewer broadcaster admin backend   {"value": 1}
DELETE vote                     -      broadcaster admin backend
GET    vote_logs                -      -           admin backend
GET    vote_config              viewer broadcaster admin backend
POST   vote_config              -      broadcaster admin backend   {"config": {}}

GET    rank                     -      broadcaster admin backend
POST   rank                     viewer broadcaster admin backend   {"key": "blue"}
DELETE rank                     -      broadcaster admin backend

GET    accumulate               -      broadcaster admin backend
POST   accumulate               viewer broadcaster admin backend   {"rating": 5}

GET    all_config               viewer broadcaster admin backend
GET    extension_config         viewer broadcaster admin backend
POST   extension_config         -      -           admin backend   {}
PATCH  extension_config         -      -           admin backend   {}
GET    channel_config           viewer broadcaster admin backend
POST   channel_config           -      broadcaster admin backend   {}
PATCH  channel_config           -      broadcaster admin backend   {}

GET    all_state                viewer broadcaster admin backend
GET    extension_state          viewer broadcaster admin backend
POST   extension_state          -      -           admin backend   {}
PATCH  extension_state          -      -           admin backend   {}
GET    channel_state            viewer broadcaster admin backend
POST   channel_state            -      broadcaster admin backend   {}
PATCH  channel_state            -      broadcaster admin backend   {}
GET    viewer_state             viewer broadcaster admin backend
POST   viewer_state             viewer broadcaster admin backend   {}
PATCH  viewer_state             viewer broadcaster admin backend   {}
GET    extension_viewer_state   viewer broadcaster admin backend
POST   extension_viewer_state   viewer broadcaster admin backend   {}
PATCH  extension_viewer_state   viewer broadcaster admin backend   {}
GET    extension_hidden_state   -      -           admin backend
POST   extension_hidden_state   -      -           admin backend   {}
PATCH  extension_hidden_state   -      -           admin backend   {}
GET    json_store               viewer broadcaster admin backend
POST   json_store               -      broadcaster admin backend   {}

POST   validate_pin             -      broadcaster -     -         {"pin": "PIN"}
GET    pin_token_exists         -      broadcaster -     -
DELETE pin                      -      broadcaster -     -

PUT    codes                    -      -           admin backend   {"codes": [["A1"]], "names": ["Hat"]}
GET    codes                    -      -           admin backend
DELETE codes                    -      -           admin backend
POST   codes/mark_from_poll     -      -           admin backend   {"poll": 1}
POST   codes/mark_from_list     -      -           admin backend   {"prizes": [0], "prize_limits": [1], "users": ["5"]}
GET    codes/eligibility        viewer broadcaster admin backend
GET    codes/redeemed           viewer broadcaster admin backend
POST   codes/redeem             viewer broadcaster admin backend   {"prize": 0}

GET    broadcast                -      broadcaster admin backend   {"event": "e", "data": {}}
POST   broadcast                -      broadcaster admin backend   {"event": "e", "data": {}}
GET    extension_broadcast      -      -           admin backend   {"event": "e", "data": {}}
POST   extension_broadcast      -      -           admin backend   {"event": "e", "data": {}}
GET    whisper_self             viewer broadcaster admin backend   {"event": "e", "data": {}}
POST   whisper_self             viewer broadcaster admin backend   {"event": "e", "data": {}}
POST   pusher_broadcast         viewer broadcaster admin backend   {"event": "sandbox:my-extension:e"}

POST   bits/transactions        viewer broadcaster admin backend   {"transactionReceipt": "RECEIPT"}
POST   datastream               viewer broadcaster admin backend   {"click": 1}

GET    curated_poll             viewer broadcaster admin backend
POST   curated_poll             viewer broadcaster admin backend   {"question_id": "default", "vote": "o1"}
POST   curated_poll_edit        -      -           admin backend   {"id": "q2"}
DELETE curated_poll_edit        -      -           admin backend   {"id": "QUESTION"}
POST   curated_poll_edit_option -      -           admin backend   {"id": "default", "option": {"id": "o2"}}
DELETE curated_poll_edit_option -      -           admin backend   {"question": "QUESTION", "option": "o1"}
POST   curated_poll_state       -      -           admin backend   {"transition": "state-locked"}
GET    curated_poll_leaderboard -      -           admin backend
GET    team_membership          viewer broadcaster admin backend
POST   team_membership          viewer broadcaster admin backend

GET    user_info                viewer broadcaster admin backend
GET    user_ids                 -      -           admin backend
"""

# Reached with nothing but a client id (ruling T2).
NAMED = """
POST   /v1/e/link/pin           {"identifier": "my-extension"}
"""

# Reached without a credential: `authtoken` and `pin` (Authentication 3), watching and control (operations).
OPEN = """
POST   /v1/e/pin                {"identifier": "my-extension"}
POST   /v1/e/authtoken          {}
GET    /_emulator/live
GET    /_emulator/ready
GET    /_emulator/metrics
GET    /_emulator/clock
POST   /_emulator/clock         {}
POST   /_emulator/reset
GET    /_emulator/sdk.js
GET    /_emulator/platform-helper.js
"""


RECEIPT = jwt.encode(
    {"data": {"transactionId": "t1", "userId": "5", "product": {"sku": "hat", "cost": {"amount": 5, "type": "bits"}}}},
    SECRET,
)


# Bodies that are too long for the table.
BODIES = {'{"poll": 1}': '{"prizes": [0], "prize_limits": [1], "correct": 1, "cutoff_timestamp": 1}'}


class Row(NamedTuple):
    method: str
    name: str
    roles: tuple[str, ...]
    body: str

    def call(self, client: Client) -> Any:
        body = self.body.replace('"PIN"', f'"{_fresh_pin(client)}"') if '"PIN"' in self.body else self.body
        body = body.replace("QUESTION", _fresh_question(client)) if '"QUESTION"' in body else body
        return client.request(self.method, self.name, content=BODIES.get(body, body).replace("RECEIPT", RECEIPT))


def _fresh_pin(client: Client) -> str:
    """A PIN that is bound to nobody's channel."""
    return str(client.post("link/pin", headers={"Authorization": CLIENT_ID}).json()["pin"])


def _fresh_question(client: Client) -> str:
    """A question with an option `o1`, if the client may make one."""
    client.post("curated_poll_edit", json={"id": "fresh"})
    client.post("curated_poll_edit_option", json={"id": "fresh", "option": {"id": "o1"}})
    return "fresh"


def _row(line: str) -> Row:
    start, _, body = line.partition("{")
    method, name, *roles = start.split()
    return Row(method, name, tuple(role for role in roles if role != "-"), f"{{{body}" if body else "")


ROWS = [_row(line) for line in TABLE.splitlines() if line]
NAMED_ROWS = [_row(line) for line in NAMED.splitlines() if line]
OPEN_ROWS = [_row(line) for line in OPEN.splitlines() if line]


def _named(rows: list[Row]) -> Any:
    return pytest.mark.parametrize("row", rows, ids=[f"{row.method} {row.name}" for row in rows])


@pytest.fixture
def of_role(live: LiveServer) -> dict[str, Client]:
    """A client of each role in one channel, where there is something to read under `default`."""
    clients = {role: live.client(role, user="777", channel="777") for role in ROLES}
    clients["admin"].post("json_store", json={"a": 1}).raise_for_status()
    clients["admin"].put("codes", json={"codes": [["A1"]], "names": ["Hat"]}).raise_for_status()
    clients["admin"].post("vote_config", json={"config": {}}).raise_for_status()
    clients["admin"].post("curated_poll_edit", json={"id": "default"}).raise_for_status()
    clients["admin"].post("curated_poll_edit_option", json={"id": "default", "option": {"id": "o1"}}).raise_for_status()
    clients["admin"].post("curated_poll_state", json={"transition": "state-unlocked"}).raise_for_status()
    return clients


def test_every_endpoint_of_the_service_stands_in_the_table(stranger: Client):
    paths = stranger.get("/schema/openapi.json").json()["paths"]

    declared = {(method.upper(), path) for path, operations in paths.items() for method in operations}

    listed = {(row.method, f"/v1/e/{row.name}") for row in ROWS}
    listed |= {(row.method, row.name) for row in NAMED_ROWS + OPEN_ROWS}
    assert listed == declared


@_named(ROWS)
@pytest.mark.ruling("A1", "B1", "C1", "P3", "S1", "S5", "W6")
def test_the_roles_of_the_table_are_allowed_and_the_others_are_answered_403(row: Row, of_role: dict[str, Client]):
    answers = {role: row.call(of_role[role]).status_code for role in ROLES}

    cells = "  ".join(f"{role} {status}" for role, status in answers.items())
    print(f"\n{row.method:6} {row.name:24} {cells}")  # noqa: T201 - the table is what `-s` asks for
    assert {role: 200 if role in row.roles else 403 for role in ROLES} == answers


@_named(ROWS)
@pytest.mark.ruling("A2")
def test_an_unknown_role_may_do_what_a_viewer_may(row: Row, live: LiveServer, of_role: dict[str, Client]):
    strange = [live.client(role, user="777", channel="777") for role in ("moderator", "ADMIN", "")]

    answers = {row.call(client).status_code for client in strange}

    assert {200 if "viewer" in row.roles else 403} == answers


@_named(ROWS)
def test_without_a_credential_every_endpoint_of_the_table_answers_401(row: Row, live: LiveServer):
    with Client(base_url=f"{live.url}/v1/e/") as nobody:
        answer = row.call(nobody)

    assert 401 == answer.status_code


@_named(NAMED_ROWS)
def test_where_a_client_id_is_enough_every_role_is_answered_and_a_bad_token_is_not(row: Row, live: LiveServer):
    clients = [live.client(role, user="777", channel="777") for role in ROLES]

    answers = [client.request(row.method, f"{live.url}{row.name}").status_code for client in clients]

    assert [200] * len(ROLES) == answers
    bad = live.bearer("no.such.token").request(row.method, f"{live.url}{row.name}", content=row.body)
    assert 401 == bad.status_code


@_named(NAMED_ROWS + OPEN_ROWS)
def test_the_open_endpoints_answer_without_a_credential(row: Row, stranger: Client):
    answer = row.call(stranger)

    assert 200 == answer.status_code


@_named(OPEN_ROWS)
def test_the_open_endpoints_do_not_look_at_a_credential(row: Row, stranger: Client):
    stranger.headers["Authorization"] = f"{CLIENT_ID} no.such.token"

    answer = row.call(stranger)

    assert 200 == answer.status_code


def test_a_refused_role_is_told_which_roles_may(viewer):
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
