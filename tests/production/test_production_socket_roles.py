"""The table of roles over the socket, in production: every action and feed, every role, and every bad token.

`pytest -s tests/production/test_production_socket_roles.py` prints the table.
The bad tokens are those of `test_production_roles.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from emulator.config.environment import PRODUCTION
from emulator.config.extensions import Extension
from emulator.config.settings import Limits, Settings
from production.test_production_roles import CREDENTIALS, Bad, authorization
from support.service import CLIENT_ID, OTHER_ID, OTHER_SECRET, SECRET, LiveServer, live_server
from support.socket_client import SocketClient

ROLES = ("viewer", "broadcaster", "admin", "backend")
WRITERS = frozenset({"broadcaster", "admin", "backend"})
SERVERS = frozenset({"admin", "backend"})
ALL = frozenset(ROLES)
OWN = {"state_id": "channel", "state": {"a": 1}}
ALL_EXTENSIONS = {"state_id": "extension", "state": {"a": 1}}


class Row(NamedTuple):
    """One request, and which roles may make it."""

    action: str
    target: str
    data: dict[str, Any]
    roles: frozenset[str]


ROWS = [
    Row("get", "state", {"state_id": "channel"}, ALL),
    Row("get", "state", {"state_id": "extension"}, ALL),
    Row("set", "state", OWN, WRITERS),
    Row("set", "state", ALL_EXTENSIONS, SERVERS),
    Row("patch", "state", OWN, WRITERS),
    Row("patch", "state", ALL_EXTENSIONS, SERVERS),
    Row("get", "config", {"config_id": "channel"}, ALL),
    Row("get", "config", {"config_id": "combined"}, ALL),
    Row("set", "config", {"config_id": "channel", "config": {"a": 1}}, WRITERS),
    Row("set", "config", {"config_id": "extension", "config": {"a": 1}}, SERVERS),
    Row("patch", "config", {"config_id": "channel", "config": {"a": 1}}, WRITERS),
    Row("patch", "config", {"config_id": "extension", "config": {"a": 1}}, SERVERS),
    Row("create", "poll", {"poll_id": "p", "prompt": "?", "options": ["a", "b"]}, WRITERS),
    Row("get", "poll", {"poll_id": "there"}, ALL),
    Row("reconfigure", "poll", {"poll_id": "there", "config": {"disabled": True}}, WRITERS),
    Row("delete", "poll", {"poll_id": "p"}, WRITERS),
    Row("broadcast", "", {"topic": "event", "data": {"a": 1}}, WRITERS),
    Row("get", "transaction", {"sku": "h"}, WRITERS),
    Row("subscribe", "state", {"topic_id": "channel"}, ALL),
    Row("subscribe", "channel", {}, ALL),
    Row("subscribe", "config", {"config_id": "channel"}, ALL),
    Row("subscribe", "poll", {"topic_id": "*"}, ALL),
    Row("subscribe", "broadcast", {"topic_id": "*"}, ALL),
    Row("subscribe", "some_event", {}, ALL),
    Row("subscribe", "twitchPurchaseBits", {"sku": "*"}, WRITERS),
    Row("subscribe", "datastream", {}, WRITERS),
    Row("unsubscribe", "poll", {"topic_id": "*"}, ALL),
]
OPEN = {("authenticate", ""), ("subscribe", "authentication"), ("unsubscribe", "authentication")}
"""What needs no authentication (ruling X3)."""


@pytest.fixture(scope="module")
def strict() -> Iterator[LiveServer]:
    extensions = {
        each.client_id: each for each in (Extension(CLIENT_ID, (SECRET,)), Extension(OTHER_ID, (OTHER_SECRET,)))
    }
    with live_server(Settings(PRODUCTION, extensions=extensions, limits=Limits(caller_rate=0))) as live:
        yield live


@pytest.fixture
def poll(strict: LiveServer) -> None:
    """The poll `there`."""
    with authenticated(strict, "admin") as game:
        game.data("create", "poll", {"poll_id": "there", "prompt": "?", "options": ["a", "b"]})


def jwt_of(headers: dict[str, str]) -> dict[str, str]:
    """What `authenticate` takes of an `Authorization` header."""
    client_id, _, token = headers["Authorization"].partition(" ")
    return {"client_id": client_id, "jwt": token}


def authenticated(live: LiveServer, role: str) -> SocketClient:
    game = SocketClient(live)
    game.data("authenticate", data=jwt_of(authorization(role)))
    return game


def status_of(reply: dict[str, Any]) -> int:
    return int(reply["errors"][0]["status"]) if "errors" in reply else 200


def named(row: Row) -> str:
    return " ".join(
        filter(None, (row.action, row.target, *(str(row.data.get(key, "")) for key in ("state_id", "config_id"))))
    )


@pytest.mark.parametrize("row", ROWS, ids=named)
@pytest.mark.usefixtures("poll")
def test_with_a_good_token_the_role_decides(strict: LiveServer, row: Row):
    answered = {}
    for role in ROLES:
        with authenticated(strict, role) as game:
            answered[role] = status_of(game.request(row.action, row.target, row.data))
    print(f"\n{named(row)}: {answered}")  # noqa: T201 - what `-s` asks for

    assert {role: 200 if role in row.roles else 403 for role in ROLES} == answered


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_before_authentication_it_is_401(strict: LiveServer, row: Row):
    with SocketClient(strict) as game:
        assert 401 == status_of(game.request(row.action, row.target, row.data))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "bad", [bad for name, bad in CREDENTIALS.items() if " alone" not in name and name != "no token"]
)
def test_a_bad_token_gives_no_rights_whatever_its_role(strict: LiveServer, bad: Bad, role: str):
    with SocketClient(strict) as game:
        refused = game.error("authenticate", data=jwt_of(bad.headers(role)))
        after = status_of(game.request("get", "state", {"state_id": "channel"}))

    assert (bad.status, 401) == (refused["status"], after)


def test_the_table_has_every_action_and_feed_of_the_service(strict: LiveServer):
    sockets = strict.service.gateway
    served = set(sockets._actions) | {("subscribe", target) for target in sockets._feeds}
    older = {(action, target) for action, target in served if target in ("channel", "extension") or action == "update"}
    settled = {("validate", "transaction"), ("refund", "transaction")}  # of a purchase: test_transactions.py

    assert set() == served - older - settled - OPEN - {(row.action, row.target) for row in ROWS}
