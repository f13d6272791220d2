"""Each cell of the socket's role table that refuses a caller is explained by its rule.

`test_roles.py` reads the explanations of REST.
"""

from __future__ import annotations

import pytest

from production.test_production_roles import authorization
from production.test_production_socket_roles import ROWS as SOCKET_ROWS
from production.test_production_socket_roles import Row as SocketRow
from production.test_production_socket_roles import jwt_of, name_of
from support.explanations import latest
from support.role_table import ROLES, any_of, write_defaults
from support.service import LiveServer
from support.socket_client import SocketClient

SOCKET_RULES = {"state": "S1", "config": "S1", "poll": "P4", "": "B1", "transaction": "gaps: Purchases"}
SOCKET_RULES |= {"twitchPurchaseBits": "gaps: Purchases", "datastream": "spec: Authentication"}
"""The rule about the roles of each target."""


@pytest.mark.parametrize("row", [row for row in SOCKET_ROWS if row.roles < set(ROLES)], ids=name_of)
def test_a_refused_role_on_the_socket_is_explained(row: SocketRow, live: LiveServer):
    write_defaults(live.client("admin", user="777", channel="777"))
    for role in (role for role in ROLES if role not in row.roles):
        with SocketClient(live) as game:
            game.data("authenticate", data=jwt_of(authorization(role)))
            assert 403 == game.error(row.action, row.target, row.data)["status"]
            explanation = latest(live)["explanation"]

        allowed = any_of(row.roles)
        is_shared = role == "broadcaster" and str(row.data.get("poll_id", "")).startswith("global-")
        assert ("A4" if is_shared else SOCKET_RULES[row.target]) == explanation["rule"]
        assert explanation["held"].startswith(f"role {role}")
        assert allowed in explanation["needed"]


@pytest.mark.parametrize("row", SOCKET_ROWS, ids=name_of)
def test_a_socket_request_before_authentication_is_explained(row: SocketRow, live: LiveServer):
    with SocketClient(live) as game:
        game.error(row.action, row.target, row.data)
        explanation = latest(live)["explanation"]

    assert ("X3", "an unauthenticated connection") == (explanation["rule"], explanation["held"])
