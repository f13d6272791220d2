"""Each malformed body of each call, and malformed data of each socket action, is refused and changes nothing.

The members and the faults are in `tests/features/body_table.py`. Faults of one rule are in its own tests.

Rulings C2, P2, P4, S1, T2, W2, W6, W8, X2, X5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from features.body_table import BODIES, Fault
from production.test_production_socket_roles import ROWS as SOCKET_ROWS
from support.role_table import CLIENT_ID_ROWS, OPEN_ROWS, ROWS, Row, each, write_defaults
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer
from support.socket_client import SocketClient

WITH_BODY = [row for row in (*ROWS, *CLIENT_ID_ROWS, *OPEN_ROWS) if row.body and "?" not in row.name]
OTHER_FORMATS = {"PUT /_emulator/seed", "PUT /_emulator/snapshot"}
CALLS = [row for row in WITH_BODY if f"{row.method} {row.name}" not in OTHER_FORMATS]
ACTIONS = {f"{row.action} {row.target}".strip(): row for row in reversed(SOCKET_ROWS)}
WITHOUT_DATA = {"subscribe channel", "subscribe datastream", "subscribe some_event", "unsubscribe poll"}
"""Actions that read no member of their data."""
Refused = tuple[int, str, str]
"""Status, reason and detail of a response."""


def state(live: LiveServer) -> list[object]:
    """Return all that a call can change but journal and limits."""
    with Client(base_url=live.url, transport=live.connections) as client:
        stored = [client.get(path).content for path in ("_emulator/snapshot", "_emulator/faults", "_ns")]
        sockets = client.get("_emulator/sockets").json()["sockets"]
        names = ("number", "stalled", "subscriptions")
        return [stored, [[each[name] for name in names] for each in sockets], live.now(), live.service.changes.mark]


def differences(faults: Iterable[Fault], send: Callable[[bytes], Refused]) -> list[str]:
    """Send each malformed body, and return in words how the responses differ from refusals that name the fault."""
    wrong = []
    for fault in faults:
        status, reason, detail = send(fault.body)
        place, _, problem = detail.partition(": ") if fault.field else ("", "", detail)
        is_named = not fault.field or fault.field in re.findall(r"\w+", place)
        if status != 400 or fault.reason not in ("", reason) or not is_named or fault.problem not in problem:
            wrong.append(f"{fault.body[:80]!r}: {status} {reason}: {detail[:80]}; expected {fault[1:]}")
    return wrong


def sender(live: LiveServer, row: Row, headers: dict[str, str]) -> Callable[[bytes], Refused]:
    """Return a function that makes the call of a row with another body."""
    connection = HTTPConnection(urlsplit(live.url).netloc)
    path = row.name if row.name.startswith("/") else f"/v1/e/{row.name}"

    def send(body: bytes) -> Refused:
        connection.request(row.method, path, body, headers)
        with connection.getresponse() as response:
            error = json.loads(response.read())
            return response.status, error.get("reason", ""), error.get("info", "")

    return send


@pytest.fixture
def channel(live: LiveServer) -> dict[str, Client]:
    """A channel with records, and its clients by role."""
    clients = {role: live.client(role, user=CHANNEL, channel=CHANNEL) for role in ("admin", "broadcaster")}
    write_defaults(clients["admin"])
    clients["admin"].post("vote_config?id=existing", json={"config": {}}).raise_for_status()
    live.freeze()
    return clients


def test_every_operation_with_a_body_is_in_the_table(live: LiveServer):
    calls = {f"{row.method} {row.name}" for row in CALLS}

    assert BODIES.keys() == calls | ACTIONS.keys() - WITHOUT_DATA


@each(CALLS)
def test_a_malformed_body_is_refused_and_changes_nothing(row: Row, live: LiveServer, channel: dict[str, Client]):
    body = BODIES[f"{row.method} {row.name}"]
    client = channel["admin" if "admin" in row.roles else "broadcaster"]
    if row.name.startswith("/"):
        client = Client(base_url=live.url, transport=live.connections)
    credential = {"Authorization": client.headers["Authorization"]} if "Authorization" in client.headers else {}
    before = state(live)

    wrong = differences((*body.texts(), *body.members_with_faults(row.content)), sender(live, row, credential))

    assert [] == wrong
    assert before == state(live)
    assert row.success == row.call(client).status_code


@pytest.mark.parametrize("action", [body.operation for body in BODIES.values() if body.operation in ACTIONS])
def test_malformed_data_of_an_action_is_refused_and_changes_nothing(
    action: str, live: LiveServer, channel: dict[str, Client]
):
    row = ACTIONS[action]
    with SocketClient(live) as game:
        token = channel["admin"].headers["Authorization"].split()[1]
        game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": token})
        before = state(live)

        def send(data: bytes) -> Refused:
            target = f',"target":"{row.target}"' if row.target else ""
            game.socket.send(f'{{"action":"{row.action}","params":{{"request_id":1{target}}},"data":{data.decode()}}}')
            reply = game.reply()
            error = reply.get("errors", [{}])[0]
            return error.get("status", 200), error.get("title", ""), error.get("detail", "")

        faults = BODIES[action].members_with_faults(json.dumps(row.data))
        wrong = differences(
            (each._replace(reason="", field=each.field if each.reason else "") for each in faults), send
        )

        assert [] == wrong
        assert before == state(live)
        game.data(row.action, row.target, row.data)
