"""Each cell of the role tables that refuses a caller is explained by its rule."""

from __future__ import annotations

import pytest

from emulator.control.explanations import texts
from production.test_production_roles import authorization
from production.test_production_socket_roles import ROWS as SOCKET_ROWS
from production.test_production_socket_roles import Row as SocketRow
from production.test_production_socket_roles import jwt_of, name_of
from support.explanations import id_of, latest, why
from support.role_table import ROLES, ROWS, Row, each, write_defaults
from support.service import Client, LiveServer
from support.socket_client import SocketClient

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


SOCKET_RULES = {"state": "S1", "config": "S1", "poll": "P4", "": "B1", "transaction": "gaps: Purchases"}
SOCKET_RULES |= {"twitchPurchaseBits": "gaps: Purchases", "datastream": "spec: Authentication"}
"""The rule about the roles of each target."""


def words(roles: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(roles[:-1]), roles[-1])))


def rule_of(row: Row, role: str) -> str:
    if (
        "?id=global-x" in row.name
        and role == "broadcaster"
        and row.path in ("vote", "vote_config", "rank", "json_store")
    ):
        return "A4"
    return next(rule for rule, names in ROLE_RULES.items() if row.path in names.split())


@each([row for row in ROWS if set(row.roles) < set(ROLES)])
def test_a_refused_role_is_explained_with_the_roles_that_may(row: Row, live: LiveServer):
    clients = {role: live.client(role, user="777", channel="777") for role in ROLES}
    write_defaults(clients["admin"], row)

    found = {role: why(live, id_of(row.call(clients[role]))) for role in ROLES if role not in row.roles}

    for role, explanation in found.items():
        assert rule_of(row, role) == explanation["rule"]
        assert explanation["held"].startswith(f"role {role}")
        assert words([each for each in ROLES if each in row.roles]) in explanation["needed"]
        assert "--as " in explanation["next_step"]
        assert texts.rules()[explanation["rule"]].text == explanation["text"]


@each(ROWS)
def test_a_call_without_a_credential_is_explained(row: Row, live: LiveServer):
    with Client(base_url=f"{live.url}/v1/e/") as client:
        explanation = why(live, id_of(row.call(client)))

    assert "spec: Authentication" == explanation["rule"]
    assert ("no Authorization header", "Authorization: <client id> <JWT>") == (
        explanation["held"],
        explanation["needed"],
    )


@pytest.mark.parametrize("row", [row for row in SOCKET_ROWS if row.roles < set(ROLES)], ids=name_of)
def test_a_refused_role_on_the_socket_is_explained(row: SocketRow, live: LiveServer):
    write_defaults(live.client("admin", user="777", channel="777"))
    for role in (role for role in ROLES if role not in row.roles):
        with SocketClient(live) as game:
            game.data("authenticate", data=jwt_of(authorization(role)))
            assert 403 == game.error(row.action, row.target, row.data)["status"]
            explanation = latest(live)["explanation"]

        allowed = words([each for each in ROLES if each in row.roles])
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
