"""`user_info`, and the directory of shared user ids."""

from __future__ import annotations

import asyncio
from typing import Any

import jwt
import pytest

from emulator.callers import Caller, Role
from support.authentication import authenticated_game
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer


def write(client: Client) -> None:
    client.post("rank", json={"key": "blue"}).raise_for_status()


def list_ids(client: Client, cursor: str = "0") -> tuple[str, list[str]]:
    """Return the next cursor and the ids of one page."""
    page = client.get("user_ids", params={"cursor": cursor}).json()
    return page["next"], [each["twitch_id"] for each in page["results"]]


@pytest.mark.ruling("A6")
def test_user_info_returns_the_caller_and_the_time(live: LiveServer, viewer):
    now = live.freeze()

    record = viewer("5551").get("user_info").json()

    assert {
        "server_time": now,
        "ip_address": "127.0.0.0",
        "registered": False,
        "visualization_id": "",
        "role": "viewer",
        "channel_id": CHANNEL,
        "user_id": "5551",
        "opaque_user_id": "U5551",
        "extension_id": "my-extension",
    } == record


def test_user_info_of_a_caller_without_ids_has_empty_strings(live: LiveServer):
    record = live.client("backend").get("user_info").json()

    assert ("", "", "A-backend") == (record["user_id"], record["channel_id"], record["opaque_user_id"])


@pytest.mark.ruling("A3")
def test_neither_a_read_nor_a_call_that_the_role_forbids_adds_an_id(viewer, backend: Client):
    reader = viewer("5551", opaque="UOPAQUE")
    for path in ("vote", "user_info", "all_state", "codes/eligibility", "curated_poll"):
        reader.get(path).raise_for_status()
    assert 403 == reader.delete("vote").status_code

    assert ("0", []) == list_ids(backend)


@pytest.mark.parametrize(("action", "ids"), [("get", []), ("set", [CHANNEL])])
def test_a_write_over_the_socket_adds_the_id(live: LiveServer, backend: Client, action: str, ids: list[str]):
    with authenticated_game(live, "broadcaster", user=CHANNEL) as game:
        game.data("subscribe", "state", {"topic_id": "channel"})
        game.data(action, "state", {"state_id": "channel", "state": {}})

    assert ("0", ids) == list_ids(backend)


def test_a_refused_credential_adds_no_id(live: LiveServer, backend: Client):
    assert 401 == live.client("viewer", user="5551", exp=1).post("vote", json={"value": 1}).status_code

    assert ("0", []) == list_ids(backend)


@pytest.mark.parametrize("opaque", [None, "UOPAQUE"])
def test_after_a_reset_the_next_write_adds_the_id_again(live: LiveServer, viewer, backend: Client, opaque: str | None):
    client = viewer("5551", opaque=opaque)
    write(client)

    live.reset()
    emptied = list_ids(backend)
    write(client)

    assert (("0", []), ("0", ["5551"])) == (emptied, list_ids(backend))


@pytest.mark.slow
def test_a_page_has_1000_ids(live: LiveServer, backend: Client):
    add_users(live, 2_001)

    pages = [list_ids(backend)]
    while pages[-1][0] != "0":
        pages.append(list_ids(backend, pages[-1][0]))

    assert [1_000, 1_000, 1] == [len(ids) for _, ids in pages]
    assert [f"{user:05}" for user in range(2_001)] == [user for _, ids in pages for user in ids]


def test_a_full_last_page_is_marked_as_the_last(live: LiveServer, backend: Client):
    add_users(live, 1_000)

    cursor, ids = list_ids(backend)

    assert ("0", 1_000) == (cursor, len(ids))


@pytest.mark.parametrize("cursor", ["", "0", None])
def test_the_first_page_has_cursor_zero_or_none(viewer, backend: Client, cursor: str | None):
    write(viewer("5551"))

    answer = backend.get("user_ids", params={} if cursor is None else {"cursor": cursor}).json()

    assert {"next": "0", "results": [{"twitch_id": "5551"}]} == answer


@pytest.mark.parametrize("cursor", ["undefined", "1", "zz", "ff", "é"])
def test_a_malformed_cursor_is_refused(backend: Client, cursor: str):
    answer = backend.get("user_ids", params={"cursor": cursor})

    assert (400, "Malformed cursor parameter") == (answer.status_code, answer.json()["reason"])


def add_users(live: LiveServer, users: int) -> None:
    """Identify this many writers who share their ids, without HTTP for speed."""

    async def identify() -> None:
        identify = live.service.dispatcher.identify
        callers = [Caller(CLIENT_ID, Role.VIEWER, CHANNEL, f"{user:05}", f"U{user:05}") for user in range(users)]
        for _, recording in await asyncio.gather(*(identify(caller, writes=True) for caller in callers)):
            if recording is not None:
                await recording

    live.run(identify())


@pytest.mark.parametrize("identity", [{"user_id": "5551"}, {"user_id": "5551", "opaque_user_id": "Ukept"}])
def test_the_first_vote_of_a_user_is_one_commit(live: LiveServer, identity: dict[str, str]):
    viewer = live.bearer(jwt.encode({"role": "viewer", "channel_id": CHANNEL, **identity}, SECRET))
    live.client("viewer", user="1", channel=CHANNEL).post("vote", json={"value": 1}).raise_for_status()
    engine: Any = live.service.engine
    live.run(live.service.control.sweep())  # the housekeeping of the start has commits of its own
    before = engine._group_commit.commits

    answer = viewer.post("vote", json={"value": 1})

    assert (200, 1) == (answer.status_code, engine._group_commit.commits - before)
