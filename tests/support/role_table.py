"""The role table: who may call what.

Written by hand from the specification's Authentication 12 and the rulings A1, A3, A4, P3, P4, S1 and S5, not from
the code.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import jwt
import pytest

from emulator.feature_list import FEATURES
from support.pins import validated_pin_token
from support.service import CLIENT_ID, SECRET, Client

ROLES = ("viewer", "broadcaster", "admin", "backend")

TABLE = """
GET    vote                     viewer broadcaster admin backend
POST   vote                     viewer broadcaster admin backend   {"value": 1}
DELETE vote                     -      broadcaster admin backend
GET    vote_logs                -      -           admin backend
GET    polls                    -      broadcaster admin backend
GET    vote_config              viewer broadcaster admin backend
POST   vote_config              -      broadcaster admin backend   {"config": {}}

GET    vote?id=global-x         viewer broadcaster admin backend
POST   vote?id=global-x         viewer broadcaster admin backend   {"value": 1}
DELETE vote?id=global-x         -      -           admin backend
GET    vote_logs?id=global-x    -      -           admin backend
GET    vote_config?id=global-x  viewer broadcaster admin backend
POST   vote_config?id=global-x  -      -           admin backend   {"config": {}}

GET    rank                     -      broadcaster admin backend
GET    rankings                 -      broadcaster admin backend
POST   rank                     viewer broadcaster admin backend   {"key": "blue"}
DELETE rank                     -      broadcaster admin backend

GET    rank?id=global-x         -      broadcaster admin backend
POST   rank?id=global-x         viewer broadcaster admin backend   {"key": "blue"}
DELETE rank?id=global-x         -      -           admin backend

GET    accumulate               -      broadcaster admin backend
GET    buffers                  -      broadcaster admin backend
POST   accumulate               viewer broadcaster admin backend   {"rating": 5}

GET    accumulate?id=global-x   -      broadcaster admin backend
POST   accumulate?id=global-x   viewer broadcaster admin backend   {"rating": 5}

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

GET    json_store?id=global-x   viewer broadcaster admin backend
POST   json_store?id=global-x   -      -           admin backend   {}

POST   validate_pin             -      broadcaster -     -         {"pin": "PIN"}
GET    pin_token_exists         -      broadcaster -     -
DELETE pin                      -      broadcaster -     -

PUT    codes                    -      -           admin backend   {"codes": [["A1"]], "names": ["Hat"]}
GET    codes                    -      -           admin backend
DELETE codes                    -      -           admin backend
POST   codes/mark_from_poll     -      -           admin backend   {"poll": 1}
POST   codes/mark_from_poll?id=global-x - -        admin backend   {"poll": 1}
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
GET    curated_poll?id=global-x viewer broadcaster admin backend
POST   curated_poll_state?id=global-x - -          admin backend   {"transition": "state-unlocked"}
GET    curated_poll_leaderboard -      -           admin backend
GET    team_membership          viewer broadcaster admin backend
POST   team_membership          viewer broadcaster admin backend

GET    user_info                viewer broadcaster admin backend
GET    user_ids                 -      -           admin backend
"""
"""Method, path under `/v1/e/`, the roles that may call it, and a valid body.

Without `id` it is about `default`, which belongs to the channel; `global-x` is extension-wide (ruling A4).
"""

CLIENT_ID_TABLE = """
POST   /v1/e/link/pin           {"identifier": "my-extension"}
"""
"""Endpoints that need only a client id (ruling T2)."""

OPEN_TABLE = """
POST   /v1/e/pin                {"identifier": "my-extension"}
POST   /v1/e/unauthed/validate_pin {"identifier": "my-extension", "jwt": "TOKEN"}
POST   /v1/e/authtoken          {}
GET    /_emulator/live
GET    /_emulator/ready
GET    /_emulator/metrics
GET    /_emulator/clock
POST   /_emulator/clock         {}
GET    /_emulator/clock/next
GET    /_emulator/contents
GET    /_emulator/wait?for=sockets&timeout=0
GET    /_emulator/sockets
POST   /_emulator/sockets/close {"all": true}
POST   /_emulator/sockets/stall {"all": true}
GET    /_emulator/faults
POST   /_emulator/faults {"match": "GET /v1/e/poll*", "effect": "drop", "client_id": "none"}
PUT    /_emulator/faults {"faults": []}
DELETE /_emulator/faults
POST   /_emulator/faults/remove {}
GET    /_emulator/journal
GET    /_emulator/journal/entry?id=latest
GET    /_emulator/journal/stream?timeout=0
GET    /_emulator/parity
POST   /_emulator/pins/expire   {"client_id": "my-extension", "pin": "PIN"}
POST   /_emulator/reset
POST   /_emulator/undo
POST   /_emulator/demo
POST   /_emulator/demo/stop
PUT    /_emulator/seed          {"extcli": 1, "client_id": "my-extension", "channel": "777"}
GET    /_emulator/explain?rule=A1
GET    /_emulator/snapshot
PUT    /_emulator/snapshot      {"snapshot": 1}
POST   /_emulator/call          {"path": "/v1/e/user_info", "client_id": "my-extension"}
GET    /_emulator/sdk.js
GET    /_emulator/platform-helper.js
GET    /_ns
POST   /_ns                     {"name": "red"}
POST   /_ns/NAME                {}
DELETE /_ns/NAME
"""
"""Endpoints without a credential: `authtoken`, `pin` (Authentication 3), monitoring and control (operations)."""

AUDIT_TABLE = """
DELETE vote                           polls deleted: poll default
DELETE vote?id=global-x               polls deleted: poll global-x
DELETE rank                           rankings deleted: ranking default
DELETE rank?id=global-x               rankings deleted: ranking global-x
POST extension_config                 stores replaced: 1 record, store extension_config
PATCH extension_config                stores patched: 1 record, store extension_config
POST extension_state                  stores replaced: 1 record, store extension_state
PATCH extension_state                 stores patched: 1 record, store extension_state
POST extension_hidden_state           stores replaced: 1 record, store extension_hidden_state
PATCH extension_hidden_state          stores patched: 1 record, store extension_hidden_state
POST json_store?id=global-x           stores replaced: 1 record, json store global-x
DELETE pin                            links revoked
PUT codes                             codes replaced: 1 set, 1 code
DELETE codes                          codes removed: 1 set
POST codes/mark_from_poll             users marked for codes: 0 users, 1 set
POST codes/mark_from_poll?id=global-x users marked for codes: 0 users, 1 set
POST codes/mark_from_list             users marked for codes: 1 user, 1 set
DELETE curated_poll_edit              questions deleted: question fresh
DELETE curated_poll_edit_option       options deleted: question fresh, option o1
POST /_emulator/clock                 clock moved: now NOW, 0 expired items
POST /_emulator/sockets/close         sockets closed: 0 sockets
POST /_emulator/sockets/stall         sockets stalled: 0 sockets
POST /_emulator/pins/expire           pins expired: 1 pin, extension my-extension
POST /_emulator/faults                faults added: 1 fault, fault f1
PUT /_emulator/faults                 faults replaced: 0 faults
DELETE /_emulator/faults              faults removed: 0 faults
POST /_emulator/faults/remove         faults removed: 0 faults
POST /_emulator/reset                 data reset
POST /_emulator/undo                  reset undone
POST /_emulator/demo                  demo started
POST /_emulator/demo/stop             demo stopped
PUT /_emulator/seed                   seed applied
PUT /_emulator/snapshot               snapshot loaded: 0 records
POST /_ns                             namespace created: named red
POST /_ns/NAME                        namespace created: named NAME
DELETE /_ns/NAME                      namespace dropped: named NAME
"""
"""The audit lines of calls, without the caller. All other calls have none."""

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
"""The rule about the roles of each endpoint that not all roles may call."""

RECEIPT = jwt.encode(
    {"data": {"transactionId": "t1", "userId": "5", "product": {"sku": "hat", "cost": {"amount": 5, "type": "bits"}}}},
    SECRET,
)
LONG_BODIES = {
    '{"poll": 1}': '{"prizes": [0], "prize_limits": [1], "correct": 1, "cutoff_timestamp": 1}',
    '{"snapshot": 1}': '{"extcli_snapshot":1,"version":"","environment":"sandbox","clock":{},"keys":false,"counts":{}'
    ',"records":[\n]}',
}
"""Bodies too long for the table, by the placeholder in it."""


class Row(NamedTuple):
    """A line of a table."""

    method: str
    name: str
    roles: tuple[str, ...]
    body: str

    @property
    def path(self) -> str:
        """The path without the query, as it is declared."""
        return self.name.partition("?")[0].replace("NAME", "{name}")

    @property
    def success(self) -> int:
        """The status of a call that succeeds."""
        return 201 if self.name == "bits/transactions" else 200

    @property
    def content(self) -> str:
        """The body without placeholders for texts too long for the table."""
        return LONG_BODIES.get(self.body, self.body).replace("RECEIPT", RECEIPT)

    @property
    def audit_line(self) -> str:
        """The audit line of a call without the caller; empty if it has none."""
        return AUDIT_LINES.get(f"{self.method} {self.name}", "")

    def rule(self, role: str) -> str:
        """The rule that forbids the call to a role."""
        shared = ("vote", "vote_config", "rank", "json_store")
        if role == "broadcaster" and "?id=global-x" in self.name and self.path in shared:
            return "A4"
        return next(rule for rule, names in ROLE_RULES.items() if self.path in names.split())

    def call(self, client: Client) -> Any:
        """Call the endpoint; `PIN`, `TOKEN`, `QUESTION` and `RECEIPT` in the body are replaced with valid values."""
        if self.name == "/_emulator/undo":  # there must be a reset to undo
            client.post("/_emulator/reset?undo=60")
        body = self.content
        body = body.replace('"PIN"', f'"{_new_pin(client)}"') if '"PIN"' in body else body
        body = body.replace("TOKEN", validated_pin_token(_root(client))) if '"TOKEN"' in body else body
        body = body.replace("QUESTION", _new_question(client)) if '"QUESTION"' in body else body
        return client.request(self.method, self.name, content=body)


def each(rows: list[Row]) -> Any:
    """Parametrize a test with `row`."""
    return pytest.mark.parametrize("row", rows, ids=[f"{row.method} {row.name}" for row in rows])


def any_of(roles: Collection[str]) -> str:
    """Return these roles in words: `broadcaster, admin or backend`."""
    *others, last = [role for role in ROLES if role in roles]
    return " or ".join(filter(None, (", ".join(others), last)))


def write_defaults(admin: Client, row: Row | None = None) -> None:
    """Create what the rows, or one row, expect under the ids `default` and `global-x`."""
    name = row.name if row else ""
    if not row or name.startswith("codes"):
        admin.put("codes", json={"codes": [["A1"]], "names": ["Hat"]}).raise_for_status()
    for id in ("default", "global-x"):
        at = {"id": id}
        if not row or name.startswith("json_store"):
            admin.post("json_store", params=at, json={"a": 1}).raise_for_status()
        if not row or name.startswith("vote"):
            admin.post("vote_config", params=at, json={"config": {}}).raise_for_status()
        if not row or name.startswith("curated_poll"):
            admin.post("curated_poll_edit", json=at).raise_for_status()
            admin.post("curated_poll_edit_option", json={**at, "option": {"id": "o1"}}).raise_for_status()
            admin.post("curated_poll_state", params=at, json={"transition": "state-unlocked"}).raise_for_status()


def _new_pin(client: Client) -> str:
    """A PIN bound to no channel."""
    return str(client.post(f"{_root(client)}/v1/e/link/pin", headers={"Authorization": CLIENT_ID}).json()["pin"])


def _root(client: Client) -> str:
    """The service's URL."""
    return f"{client.base_url.scheme}://{client.base_url.netloc.decode()}"


def _new_question(client: Client) -> str:
    """The id of a question with an option `o1`, created if the client may."""
    client.post("curated_poll_edit", json={"id": "fresh"})
    client.post("curated_poll_edit_option", json={"id": "fresh", "option": {"id": "o1"}})
    return "fresh"


def _row(line: str) -> Row:
    start, _, body = line.partition("{")
    method, name, *roles = start.split()
    return Row(method, name, tuple(role for role in roles if role != "-"), f"{{{body}" if body else "")


AUDIT_LINES = {line[:37].strip(): line[37:].strip() for line in AUDIT_TABLE.splitlines() if line}
ROWS = [_row(line) for line in TABLE.splitlines() if line]
CLIENT_ID_ROWS = [_row(line) for line in CLIENT_ID_TABLE.splitlines() if line]
OPEN_ROWS = [_row(line) for line in OPEN_TABLE.splitlines() if line]
OPEN_ROWS += [Row("GET", f"/_emulator/contents/{kind.name}", (), "") for kind in FEATURES.kinds]
