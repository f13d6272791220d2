"""The role table of the socket in production: every action and feed with every role, and every invalid token.

The invalid credentials are in `test_production_roles.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from emulator.core.settings import Limits
from production.test_production_roles import CREDENTIALS, authorization
from support.service import OURS, THEIRS, LiveServer, in_production, live_server
from support.socket_client import SocketClient

ROLES = ("viewer", "broadcaster", "admin", "backend")
WRITERS = frozenset({"broadcaster", "admin", "backend"})
SERVERS = frozenset({"admin", "backend"})
ALL = frozenset(ROLES)
CHANNEL_STATE = {"state_id": "channel", "state": {"a": 1}}
EXTENSION_STATE = {"state_id": "extension", "state": {"a": 1}}


class Row(NamedTuple):
    """A request, and the roles that may send it."""

    action: str
    target: str
    data: dict[str, Any]
    roles: frozenset[str]


ROWS = [
    Row("get", "state", {"state_id": "channel"}, ALL),
    Row("get", "state", {"state_id": "extension"}, ALL),
    Row("set", "state", CHANNEL_STATE, WRITERS),
    Row("set", "state", EXTENSION_STATE, SERVERS),
    Row("patch", "state", CHANNEL_STATE, WRITERS),
    Row("patch", "state", EXTENSION_STATE, SERVERS),
    Row("get", "config", {"config_id": "channel"}, ALL),
    Row("get", "config", {"config_id": "combined"}, ALL),
    Row("set", "config", {"config_id": "channel", "config": {"a": 1}}, WRITERS),
    Row("set", "config", {"config_id": "extension", "config": {"a": 1}}, SERVERS),
    Row("patch", "config", {"config_id": "channel", "config": {"a": 1}}, WRITERS),
    Row("patch", "config", {"config_id": "extension", "config": {"a": 1}}, SERVERS),
    Row("create", "poll", {"poll_id": "p", "prompt": "?", "options": ["a", "b"]}, WRITERS),
    Row("get", "poll", {"poll_id": "existing"}, ALL),
    Row("reconfigure", "poll", {"poll_id": "existing", "config": {"disabled": True}}, WRITERS),
    Row("delete", "poll", {"poll_id": "p"}, WRITERS),
    Row("create", "poll", {"poll_id": "global-p", "prompt": "?", "options": ["a", "b"]}, SERVERS),
    Row("get", "poll", {"poll_id": "global-x"}, ALL),
    Row("reconfigure", "poll", {"poll_id": "global-x", "config": {"disabled": True}}, SERVERS),
    Row("delete", "poll", {"poll_id": "global-p"}, SERVERS),
    Row("broadcast", "", {"topic": "event", "data": {"a": 1}}, WRITERS),
    Row("get", "transaction", {"sku": "h"}, WRITERS),
    Row("subscribe", "state", {"topic_id": "channel"}, ALL),
    Row("subscribe", "channel", {}, ALL),
    Row("subscribe", "config", {"config_id": "channel"}, ALL),
    Row("subscribe", "poll", {"topic_id": "*"}, ALL),
    Row("subscribe", "poll", {"topic_id": "p"}, ALL),
    Row("subscribe", "poll", {"topic_id": "global-x"}, ALL),
    Row("subscribe", "broadcast", {"topic_id": "*"}, ALL),
    Row("subscribe", "some_event", {}, ALL),
    Row("subscribe", "twitchPurchaseBits", {"sku": "*"}, WRITERS),
    Row("subscribe", "datastream", {}, WRITERS),
    Row("unsubscribe", "poll", {"topic_id": "*"}, ALL),
]
PUBLIC = {("authenticate", ""), ("subscribe", "authentication"), ("unsubscribe", "authentication")}
"""Actions and feeds that need no authentication (ruling X3)."""


@pytest.fixture(scope="module")
def strict() -> Iterator[LiveServer]:
    with live_server(in_production(OURS, THEIRS, limits=Limits(caller_rate=0))) as live:
        yield live


@pytest.fixture
def poll(strict: LiveServer) -> None:
    """A poll of the channel, and one that all channels share."""
    with authenticated(strict, "admin") as game:
        for poll_id in ("existing", "global-x"):
            game.data("create", "poll", {"poll_id": poll_id, "prompt": "?", "options": ["a", "b"]})


def jwt_of(headers: dict[str, str]) -> dict[str, str]:
    """The data of `authenticate` for an `Authorization` header."""
    client_id, _, token = headers["Authorization"].partition(" ")
    return {"client_id": client_id, "jwt": token}


def authenticated(live: LiveServer, role: str) -> SocketClient:
    game = SocketClient(live)
    game.data("authenticate", data=jwt_of(authorization(role)))
    return game


def status_of(reply: dict[str, Any]) -> int:
    return int(reply["errors"][0]["status"]) if "errors" in reply else 200


def name_of(row: Row) -> str:
    ids = (row.data.get(key, "") for key in ("state_id", "config_id", "poll_id", "topic_id"))
    return " ".join(filter(None, (row.action, row.target, *ids)))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.usefixtures("poll")
def test_the_role_decides_with_a_valid_token(strict: LiveServer, role: str):
    with authenticated(strict, role) as game:
        statuses = {name_of(row): status_of(game.request(row.action, row.target, row.data)) for row in ROWS}

    assert {name_of(row): 200 if role in row.roles else 403 for row in ROWS} == statuses


def test_every_request_before_authentication_gets_401(strict: LiveServer):
    with SocketClient(strict) as game:
        assert {401} == {status_of(game.request(row.action, row.target, row.data)) for row in ROWS}


def test_an_invalid_token_of_any_role_gives_no_rights(strict: LiveServer):
    for name, invalid in CREDENTIALS.items():
        for role in invalid.roles if name not in ("no token", "a client id alone") else ():
            with SocketClient(strict) as game:
                refused = game.error("authenticate", data=jwt_of(invalid.headers(role)))
                after = status_of(game.request("get", "state", {"state_id": "channel"}))

            assert (400 if name == "Bearer" else invalid.status, 401) == (refused["status"], after), name


def test_the_table_is_complete(strict: LiveServer):
    messages = strict.service.messages
    served = set(messages._actions) | {("subscribe", target) for target in messages._feeds}
    older = {(action, target) for action, target in served if target in ("channel", "extension") or action == "update"}
    names = ("validate", "refund", "subscribe")
    purchases = {(name, "transaction") for name in names}  # in test_transactions.py

    assert set() == served - older - purchases - PUBLIC - {(row.action, row.target) for row in ROWS}
