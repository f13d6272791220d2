"""`user_info` and the directory of shared ids."""

from __future__ import annotations

import asyncio

import jwt
import pytest

from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer


def shared(client: Client, cursor: str = "0") -> tuple[str, list[str]]:
    page = client.get("user_ids", params={"cursor": cursor}).json()
    return page["next"], [each["twitch_id"] for each in page["results"]]


def test_user_info_says_who_the_caller_is_and_what_time_it_is(live: LiveServer, viewer):
    now = live.freeze()

    record = viewer("5551").get("user_info").json()

    assert {
        "server_time": now,
        "ip_address": "127.0.0.1",
        "registered": False,
        "visualization_id": "",
        "role": "viewer",
        "channel_id": CHANNEL,
        "user_id": "5551",
        "opaque_user_id": "U5551",
        "extension_id": "my-extension",
    } == record


def test_user_info_of_a_caller_without_ids_has_empty_texts(live: LiveServer):
    record = live.client("backend").get("user_info").json()

    assert ("", "", "A-backend") == (record["user_id"], record["channel_id"], record["opaque_user_id"])


def test_the_directory_is_empty_before_anybody_shared_an_id(live: LiveServer):
    assert ("0", []) == shared(live.client("backend"))


def test_an_id_is_in_the_directory_once_its_user_called(viewer, backend: Client):
    for user in ("5551", "5552", "5551"):
        viewer(user).get("vote")

    assert ("0", ["5551", "5552"]) == shared(backend)


def test_a_user_who_does_not_share_an_id_is_not_in_the_directory(viewer, backend: Client):
    viewer(None, opaque="Aabc").get("vote")

    assert ("0", []) == shared(backend)


def test_the_directory_covers_all_channels_and_one_extension(live: LiveServer, backend: Client):
    live.client("viewer", user="1", channel="777").get("vote")
    live.client("viewer", user="2", channel="888").get("vote")
    live.client("viewer", user="3", channel="777", client_id="other").get("vote")

    assert ("0", ["1", "2"]) == shared(backend)
    assert ("0", ["3"]) == shared(live.client("backend", client_id="other"))


def test_a_refused_credential_enters_nobody(live: LiveServer, backend: Client):
    live.client("viewer", user="5551", exp=1).get("vote")

    assert ("0", []) == shared(backend)


def test_a_reset_empties_the_directory_and_the_next_call_fills_it_again(live: LiveServer, viewer, backend: Client):
    client = viewer("5551")
    client.get("vote")

    live.reset()
    emptied = shared(backend)
    client.get("vote")

    assert (("0", []), ("0", ["5551"])) == (emptied, shared(backend))


def test_the_directory_is_read_a_thousand_at_a_time(live: LiveServer, backend: Client):
    enter(live, 2_001)

    pages = [shared(backend)]
    while pages[-1][0] != "0":
        pages.append(shared(backend, pages[-1][0]))

    assert [1_000, 1_000, 1] == [len(ids) for _, ids in pages]
    assert [f"{user:05}" for user in range(2_001)] == [user for _, ids in pages for user in ids]


def test_a_full_last_page_says_that_it_is_the_last(live: LiveServer, backend: Client):
    enter(live, 1_000)

    following, ids = shared(backend)

    assert ("0", 1_000) == (following, len(ids))


@pytest.mark.parametrize("cursor", ["", "0", None])
def test_a_listing_begins_with_cursor_zero_or_none(viewer, backend: Client, cursor: str | None):
    viewer("5551").get("vote")

    answer = backend.get("user_ids", params={} if cursor is None else {"cursor": cursor}).json()

    assert {"next": "0", "results": [{"twitch_id": "5551"}]} == answer


@pytest.mark.parametrize("cursor", ["undefined", "1", "zz", "ff", "é"])
def test_a_cursor_that_no_answer_could_have_given_is_refused(backend: Client, cursor: str):
    answer = backend.get("user_ids", params={"cursor": cursor})

    assert (400, "Malformed cursor parameter") == (answer.status_code, answer.json()["reason"])


def enter(live: LiveServer, users: int) -> None:
    """Have this many users share their ids, past the wire for speed."""

    async def callers() -> None:
        tokens = [jwt.encode({"user_id": f"{user:05}"}, SECRET) for user in range(users)]
        await asyncio.gather(*(live.service.identities.caller(f"{CLIENT_ID} {token}") for token in tokens))

    live.run(callers())
