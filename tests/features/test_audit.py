"""Audit lines of socket actions and of special calls. `test_roles.py` has the line of each call."""

from __future__ import annotations

import pytest

from support.audit_lines import AuditLines
from support.role_table import write_defaults
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer
from support.socket_client import SocketClient

WHO = "client my-extension, admin, channel 777, user U9001"

ACTIONS = {
    "set state": ({"state_id": "extension", "state": {"a": 1}}, "stores replaced: 1 record, store extension_state"),
    "patch state": ({"state_id": "extension", "state": {"a": 2}}, "stores patched: 1 record, store extension_state"),
    "set config": ({"config_id": "extension", "config": {"a": 1}}, "stores replaced: 1 record, store extension_config"),
    "patch config": (
        {"config_id": "extension", "config": {"a": 2}},
        "stores patched: 1 record, store extension_config",
    ),
    "create poll": ({"poll_id": "lunch", "config": {"disabled": True}}, "polls disabled: poll lunch"),
    "reconfigure poll": ({"poll_id": "default", "config": {"disabled": True}}, "polls disabled: poll default"),
    "delete poll": ({"poll_id": "default"}, "polls deleted: poll default"),
}
"""The data of a socket action, and its line without the caller."""


@pytest.fixture
def admin(live: LiveServer) -> Client:
    """An admin in a channel with the default records."""
    admin = live.client("admin", user="9001", channel=CHANNEL)
    write_defaults(admin)
    return admin


@pytest.mark.parametrize("name", ACTIONS)
def test_a_socket_action_writes_the_line_of_its_rest_call(
    name: str, admin: Client, live: LiveServer, audit: AuditLines
):
    data, line = ACTIONS[name]
    with SocketClient(live) as game:
        game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": admin.headers["Authorization"].split()[1]})
        audit.records.clear()

        game.data(*name.split(), data)

    assert [f"{line}; {WHO}"] == audit.texts


@pytest.mark.parametrize("name", [*ACTIONS, "set state of one channel"])
def test_a_refused_action_writes_no_line(name: str, live: LiveServer, audit: AuditLines):
    with SocketClient(live) as game:
        viewer = live.client("viewer", user="5551", channel=CHANNEL)
        game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": viewer.headers["Authorization"].split()[1]})

        game.error(*name.split()[:2], ACTIONS.get(name, ({"state_id": "channel", "state": {}}, ""))[0])

    assert [] == audit.texts


def test_a_backend_that_clears_all_channels_logs_their_number(live: LiveServer, audit: AuditLines):
    backend = live.client("backend")
    for channel in ("777", "888"):
        live.client("viewer", user="1", channel=channel).post("vote?id=a", json={"value": 1}).raise_for_status()
        live.client("viewer", user="1", channel=channel).post("rank?id=b", json={"key": "x"}).raise_for_status()

    backend.delete("vote?id=a").raise_for_status()
    backend.delete("rank?id=b").raise_for_status()
    backend.delete("vote?id=a&channel_id=777").raise_for_status()

    who = "client my-extension, backend"
    assert [
        f"polls deleted: poll a, 2 polls; {who}, user A-backend",
        f"rankings deleted: ranking b, 2 rankings; {who}, user A-backend",
        f"polls deleted: poll a; {who}, channel 777, user A-backend",
    ] == audit.texts


def test_a_definition_that_disables_a_poll_has_a_line(admin: Client, audit: AuditLines):
    audit.records.clear()

    for disabled in (False, True):
        admin.post("vote_config?id=a", json={"config": {"disabled": disabled}}).raise_for_status()

    assert [f"polls disabled: poll a; {WHO}"] == audit.texts


def test_a_patch_of_many_viewers_logs_their_number(admin: Client, audit: AuditLines):
    audit.records.clear()

    admin.patch("viewer_state", json={"U1": {"a": 1}, "U2": {"a": 2}}).raise_for_status()

    assert [f"stores patched: 2 records, store viewer_state; {WHO}"] == audit.texts


def test_a_change_by_a_call_as_any_caller_is_logged_as_the_operators(stranger: Client, audit: AuditLines):
    body = {"method": "PUT", "path": "/v1/e/codes", "client_id": CLIENT_ID, "role": "backend"}
    body |= {"body": {"codes": [["A1", "A2"]], "names": ["Hat"]}}

    stranger.post("/_emulator/call", json=body).raise_for_status()

    assert ["codes replaced: 1 set, 2 codes; operator as client my-extension, backend, user A-backend"] == audit.texts


def test_applying_a_seed_logs_its_counts_and_not_its_calls(stranger: Client, audit: AuditLines):
    poll = {"id": "a", "options": ["A", "B"], "votes": {"U1": 1, "U2": 1}}
    codes = {"index": 0, "name": "Hat", "codes": ["A1", "A2", "A3"]}
    seed = {"extcli": 1, "client_id": CLIENT_ID, "channel": CHANNEL, "polls": [poll], "codes": [codes]}

    stranger.put("/_emulator/seed", json=seed).raise_for_status()

    assert ["seed applied: 1 poll, 2 votes, 3 codes; operator"] == audit.texts


def test_an_id_cannot_pass_for_another_fact(live: LiveServer, audit: AuditLines):
    user = "x; operator, role admin"

    live.client("backend", opaque=user).delete("vote?id=a&channel_id=777").raise_for_status()

    assert [f"polls deleted: poll a; client my-extension, backend, channel 777, user {user!r}"] == audit.texts
