"""Audit lines: one for each call that changes something for good, and a reason for each call without one."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from emulator.feature_list import FEATURES
from support.role_table import CLIENT_ID_ROWS, OPEN_ROWS, ROWS, Row, each, write_defaults
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer
from support.socket_client import SocketClient

WHO = "client my-extension, admin, channel 777, user U9001"
OWNER = "client my-extension, broadcaster, channel 777, user U777"

LINES = {
    "DELETE vote": f"polls deleted: poll default; {WHO}",
    "DELETE vote?id=global-x": f"polls deleted: poll global-x; {WHO}",
    "DELETE rank": f"rankings deleted: ranking default; {WHO}",
    "DELETE rank?id=global-x": f"rankings deleted: ranking global-x; {WHO}",
    "POST extension_config": f"stores replaced: 1 record, store extension_config; {WHO}",
    "PATCH extension_config": f"stores patched: 1 record, store extension_config; {WHO}",
    "POST extension_state": f"stores replaced: 1 record, store extension_state; {WHO}",
    "PATCH extension_state": f"stores patched: 1 record, store extension_state; {WHO}",
    "POST extension_hidden_state": f"stores replaced: 1 record, store extension_hidden_state; {WHO}",
    "PATCH extension_hidden_state": f"stores patched: 1 record, store extension_hidden_state; {WHO}",
    "POST json_store?id=global-x": f"stores replaced: 1 record, json store global-x; {WHO}",
    "DELETE pin": f"links revoked; {OWNER}",
    "PUT codes": f"codes replaced: 1 set, 1 code; {WHO}",
    "DELETE codes": f"codes removed: 1 set; {WHO}",
    "POST codes/mark_from_poll": f"users marked for codes: 0 users, 1 set; {WHO}",
    "POST codes/mark_from_poll?id=global-x": f"users marked for codes: 0 users, 1 set; {WHO}",
    "POST codes/mark_from_list": f"users marked for codes: 1 user, 1 set; {WHO}",
    "DELETE curated_poll_edit": f"questions deleted: question fresh; {WHO}",
    "DELETE curated_poll_edit_option": f"options deleted: question fresh, option o1; {WHO}",
    "POST /_emulator/clock": "clock moved: now NOW, 0 expired items; operator",
    "POST /_emulator/sockets/close": "sockets closed: 0 sockets; operator",
    "POST /_emulator/sockets/stall": "sockets stalled: 0 sockets; operator",
    "POST /_emulator/pins/expire": "pins expired: 1 pin, extension my-extension; operator",
    "POST /_emulator/faults": "faults added: 1 fault, fault f1; operator",
    "PUT /_emulator/faults": "faults replaced: 0 faults; operator",
    "DELETE /_emulator/faults": "faults removed: 0 faults; operator",
    "POST /_emulator/faults/remove": "faults removed: 0 faults; operator",
    "POST /_emulator/reset": "data reset; operator",
    "POST /_emulator/undo": "reset undone; operator",
    "PUT /_emulator/seed": "seed applied; operator",
    "PUT /_emulator/snapshot": "snapshot loaded: 0 records; operator",
    "POST /_ns": "namespace created: named red; operator",
    "POST /_ns/NAME": "namespace created: named NAME; operator",
    "DELETE /_ns/NAME": "namespace dropped: named NAME; operator",
}
"""The lines of calls that change something for good. They are about an admin's token for channel 777."""

ONE_USER = "a viewer's own vote, answer, text, team or record"
ONE_CHANNEL = "one channel's settings and state, which broadcasters and games write all the time"
MESSAGE = "a message, which nothing keeps"
TRAFFIC = "what the extension is for, and what the journal and the data show"
REASONS = {
    "POST vote": ONE_USER,
    "POST rank": ONE_USER,
    "POST accumulate": ONE_USER,
    "POST viewer_state": ONE_USER,
    "PATCH viewer_state": ONE_USER,
    "POST extension_viewer_state": ONE_USER,
    "PATCH extension_viewer_state": ONE_USER,
    "POST codes/redeem": ONE_USER,
    "POST curated_poll": ONE_USER,
    "POST team_membership": ONE_USER,
    "POST bits/transactions": ONE_USER,
    "POST channel_config": ONE_CHANNEL,
    "PATCH channel_config": ONE_CHANNEL,
    "POST channel_state": ONE_CHANNEL,
    "PATCH channel_state": ONE_CHANNEL,
    "POST json_store": ONE_CHANNEL,
    "POST vote_config": "a definition keeps the votes; one that disables the poll has a line",
    "POST broadcast": MESSAGE,
    "POST extension_broadcast": MESSAGE,
    "POST whisper_self": MESSAGE,
    "POST pusher_broadcast": MESSAGE,
    "POST datastream": MESSAGE,
    "POST curated_poll_edit": TRAFFIC,
    "POST curated_poll_edit_option": TRAFFIC,
    "POST curated_poll_state": TRAFFIC,
    "POST validate_pin": "it makes a link; the line is for its end",
    "POST /v1/e/link/pin": "a PIN expires by itself",
    "POST /v1/e/pin": "a PIN expires by itself",
    "POST /v1/e/unauthed/validate_pin": "it changes nothing",
    "POST /v1/e/authtoken": "it changes nothing",
    "POST /_emulator/call": "the call that it makes has its own line",
    "POST /_emulator/ui/{screen}": "a page; what its form changes has its own line",
}
"""Why a call that is not a GET has no line, by method and path without the query."""

CALLS = [row for row in [*ROWS, *CLIENT_ID_ROWS, *OPEN_ROWS] if row.method != "GET"]
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
QUIET_ACTIONS = {
    "authenticate": "it makes or renews a link; the line is for its end",
    "broadcast": MESSAGE,
    "validate transaction": TRAFFIC,
}


class Lines(logging.Handler):
    """Keeps the records of the audit log."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def texts(self) -> list[str]:
        return [record.getMessage() for record in self.records]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """The audit lines of a test."""
    kept, log = Lines(), logging.getLogger("emulator.audit")
    log.addHandler(kept)
    log.setLevel(logging.INFO)
    try:
        yield kept
    finally:
        log.removeHandler(kept)
        log.setLevel(logging.NOTSET)


@pytest.fixture
def admin(live: LiveServer) -> Client:
    """An admin in a channel with the default records and a link."""
    admin = live.client("admin", user="9001", channel=CHANNEL)
    write_defaults(admin)
    return admin


@pytest.fixture
def caller(row: Row, admin: Client, broadcaster: Client, stranger: Client) -> Client:
    """Who makes the call of a row."""
    if not row.name.startswith("/"):
        return admin if not row.roles or "admin" in row.roles else broadcaster
    stranger.headers["Authorization"] = CLIENT_ID
    return stranger


def test_each_call_that_is_not_a_get_has_a_line_or_a_reason():
    declared = {
        f"{endpoint.method} {endpoint.path.removeprefix('/v1/e/').replace('{name}', 'NAME')}"
        for feature in FEATURES
        for endpoint in feature.endpoints
        if endpoint.method != "GET"
    }
    with_line = {line.partition("?")[0] for line in LINES}
    reasons = {reason.replace("/v1/e/", "") for reason in REASONS}

    assert declared == with_line | reasons
    assert with_line & reasons == {"POST json_store"}


def test_each_socket_action_that_writes_has_a_line_or_a_reason():
    declared = {
        " ".join(action.names[0]).strip()
        for feature in FEATURES
        for action in feature.actions
        if action.names[0][0] != "get"
    }

    assert declared == ACTIONS.keys() | QUIET_ACTIONS.keys()


@each(CALLS)
def test_a_call_writes_its_line_and_no_other(row: Row, caller: Client, live: LiveServer, lines: Lines):
    if row.name == "pin":
        live.client("broadcaster", user=CHANNEL, channel=CHANNEL).post("link/pin").raise_for_status()
    expected = LINES.get(f"{row.method} {row.name}")
    answer = row.call(caller)
    assert row.success == answer.status_code, answer.text
    if row.name == "/_emulator/undo":
        assert "data reset: 60 seconds to undo; operator" == lines.texts.pop(0)

    if expected is not None and "NOW" in expected:
        expected = expected.replace("NOW", str(answer.json()["now"]))
    assert lines.texts[-1:] == ([expected] if expected else [])


@pytest.mark.parametrize("name", ACTIONS)
def test_a_socket_action_writes_the_line_of_its_rest_call(name: str, admin: Client, live: LiveServer, lines: Lines):
    data, line = ACTIONS[name]
    with SocketClient(live) as game:
        game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": admin.headers["Authorization"].split()[1]})
        lines.records.clear()

        game.data(*name.split(), data)

    assert [f"{line}; {WHO}"] == lines.texts


@pytest.mark.parametrize("name", [*ACTIONS, "set state of one channel"])
def test_a_refused_action_writes_no_line(name: str, live: LiveServer, lines: Lines):
    with SocketClient(live) as game:
        viewer = live.client("viewer", user="5551", channel=CHANNEL)
        game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": viewer.headers["Authorization"].split()[1]})

        game.error(*name.split()[:2], ACTIONS.get(name, ({"state_id": "channel", "state": {}}, ""))[0])

    assert [] == lines.texts


@each([row for row in CALLS if f"{row.method} {row.name}" in LINES and row.roles])
def test_a_refused_call_writes_no_line(row: Row, admin: Client, viewer, lines: Lines):
    lines.records.clear()

    assert 403 == row.call(viewer()).status_code

    assert [] == lines.texts


def test_a_backend_that_clears_all_channels_logs_their_number(live: LiveServer, lines: Lines):
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
    ] == lines.texts


def test_a_definition_that_disables_a_poll_has_a_line(admin: Client, lines: Lines):
    lines.records.clear()

    for disabled in (False, True):
        admin.post("vote_config?id=a", json={"config": {"disabled": disabled}}).raise_for_status()

    assert [f"polls disabled: poll a; {WHO}"] == lines.texts


def test_a_patch_of_many_viewers_logs_their_number(admin: Client, lines: Lines):
    lines.records.clear()

    admin.patch("viewer_state", json={"U1": {"a": 1}, "U2": {"a": 2}}).raise_for_status()

    assert [f"stores patched: 2 records, store viewer_state; {WHO}"] == lines.texts


def test_a_change_by_a_call_as_any_caller_is_logged_as_the_operators(stranger: Client, lines: Lines):
    body = {"method": "PUT", "path": "/v1/e/codes", "client_id": CLIENT_ID, "role": "backend"}
    body |= {"body": {"codes": [["A1", "A2"]], "names": ["Hat"]}}

    stranger.post("/_emulator/call", json=body).raise_for_status()

    assert ["codes replaced: 1 set, 2 codes; operator as client my-extension, backend, user A-backend"] == lines.texts


def test_applying_a_seed_logs_its_counts_and_not_its_calls(stranger: Client, lines: Lines):
    poll = {"id": "a", "options": ["A", "B"], "votes": {"U1": 1, "U2": 1}}
    codes = {"index": 0, "name": "Hat", "codes": ["A1", "A2", "A3"]}
    seed = {"extcli": 1, "client_id": CLIENT_ID, "channel": CHANNEL, "polls": [poll], "codes": [codes]}

    stranger.put("/_emulator/seed", json=seed).raise_for_status()

    assert ["seed applied: 1 poll, 2 votes, 3 codes; operator"] == lines.texts


def test_namespaces_that_are_created_forked_and_dropped_are_logged(live: LiveServer, lines: Lines):
    with Client(base_url=live.url) as client:
        client.post("/_ns/audited").raise_for_status()
        client.post("/_ns/audited-fork?from=audited").raise_for_status()
        for name in ("audited", "audited-fork"):
            client.delete(f"/_ns/{name}").raise_for_status()

    assert [
        "namespace created: named audited; operator",
        "namespace created: named audited-fork, source audited; operator",
        "namespace dropped: named audited; operator",
        "namespace dropped: named audited-fork; operator",
    ] == lines.texts


def test_an_id_cannot_pass_for_another_fact(live: LiveServer, lines: Lines):
    user = "x; operator, role admin"

    live.client("backend", opaque=user).delete("vote?id=a&channel_id=777").raise_for_status()

    assert [f"polls deleted: poll a; client my-extension, backend, channel 777, user {user!r}"] == lines.texts
