"""Saving and loading all data of a service: `/_emulator/snapshot`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server
from support.socket_polls import create, subscribe, vote

DAY = 86_400_000


def save(client: Client, **query: str) -> bytes:
    return client.get("/_emulator/snapshot", params=query).raise_for_status().content


def load(client: Client, snapshot: bytes) -> dict[str, Any]:
    return dict(client.put("/_emulator/snapshot", content=snapshot).raise_for_status().json())


def records(snapshot: bytes) -> list[dict[str, Any]]:
    return list(json.loads(snapshot)["records"])


@pytest.fixture
def used(viewer: Callable[..., Client], broadcaster: Client, backend: Client) -> None:
    """Data of many kinds."""
    for user, value in (("1", 3), ("2", 1), ("3", 3)):
        viewer(user).post("vote", params={"id": "rps"}, json={"value": value}).raise_for_status()
    viewer().post("rank", json={"key": "blue"}).raise_for_status()
    viewer().post("accumulate", json={"text": "é\n"}).raise_for_status()
    broadcaster.post("channel_state", json={"round": 4}).raise_for_status()
    broadcaster.post("link/pin").raise_for_status()
    backend.put("codes", json={"codes": [["A", "B", "C"]], "names": ["Hats"]}).raise_for_status()
    backend.post("codes/mark_from_list", json={"prizes": [0], "prize_limits": [1], "users": ["1"]}).raise_for_status()
    viewer("1").post("codes/redeem", json={"prize": 0}).raise_for_status()


@pytest.mark.usefixtures("used")
def test_a_loaded_snapshot_is_saved_as_the_same_bytes(live: LiveServer, stranger: Client):
    before = save(stranger)
    live.reset()
    assert [] == records(save(stranger))

    answer = load(stranger, before)

    assert before == save(stranger)
    assert {"counts": json.loads(before)["counts"], "keys": False} == answer


@pytest.mark.usefixtures("used")
def test_the_answer_counts_what_has_not_expired(stranger: Client):
    saved = save(stranger)
    eight_days_later = saved.replace(b'"clock":{}', b'"clock":{"offset":%d}' % (8 * DAY), 1)

    counts = load(stranger, eight_days_later)["counts"]

    assert Counter(each["type"] for each in records(save(stranger))) == counts
    assert "ballot" in json.loads(saved)["counts"].keys() - counts.keys()


@pytest.mark.usefixtures("used")
def test_a_loaded_snapshot_behaves_as_the_service_it_was_saved_from(
    live: LiveServer, stranger: Client, viewer: Callable[..., Client], broadcaster: Client
):
    before = save(stranger)
    live.reset()
    load(stranger, before)

    viewer("2").post("vote", params={"id": "rps"}, json={"value": 3}).raise_for_status()
    viewer("4").post("vote", params={"id": "rps"}, json={"value": 0}).raise_for_status()

    assert [1, 0, 0, 3] == viewer().get("vote", params={"id": "rps"}).json()["specific"][:4]
    assert {"round": 4} == broadcaster.get("channel_state").json()
    assert [["A"]] == viewer("1").get("codes/redeemed").json()["redeemed"]


@pytest.mark.parametrize("frozen", [True, False])
def test_the_clock_is_restored(live: LiveServer, stranger: Client, frozen: bool):
    if frozen:
        live.set(5 * DAY)
    else:
        live.advance(3 * DAY)
    clock, snapshot = stranger.get("/_emulator/clock").json(), save(stranger)
    live.reset()

    load(stranger, snapshot)

    compared = ("frozen", "now" if frozen else "offset")
    loaded = stranger.get("/_emulator/clock").json()
    assert [clock[each] for each in compared] == [loaded[each] for each in compared]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"extcli_snapshot":1', '"extcli_snapshot":9', "line 1: extcli_snapshot: format 9 is unknown"),
        ('"sandbox"', '"production"', "line 1: environment: "),
        ('"clock":{}', '"clock":{"frozen_at":-1}', "line 1: clock: "),
        ('"ballot":2', '"ballot":3', "ballot: the first line counts 3 of them, but there are 2"),
        ('"type":"entry"', '"type":"enter"', "type: invalid value 'enter'"),
        ('"type":"member","key":["marked"', '"type":"member","key":["other"', "there is no roster with this key"),
        ('"type":"document","key":["channel_state"', '"type":"document","key":["viewer_state"', "not in order"),
        ("\n]}", "", "incomplete"),
    ],
)
@pytest.mark.usefixtures("used")
def test_an_invalid_snapshot_is_refused_with_its_line_and_changes_nothing(
    stranger: Client, old: str, new: str, problem: str
):
    before = save(stranger)
    assert old in before.decode()

    answer = stranger.put("/_emulator/snapshot", content=before.decode().replace(old, new))

    assert 400 == answer.status_code
    assert "Invalid snapshot" == answer.json()["reason"]
    assert answer.json()["info"].startswith("line ")
    assert problem in answer.json()["info"]
    assert before == save(stranger)


def test_a_namespace_is_saved_and_loaded_alone(live: LiveServer, stranger: Client, viewer: Callable[..., Client]):
    viewer().post("vote", json={"value": 1}).raise_for_status()
    snapshot = save(stranger)
    with Client(base_url=f"{live.url}/_ns/blue") as blue:
        load(blue, snapshot)
        assert snapshot == save(blue)

        live.reset()

        assert snapshot == save(blue)
        assert [] == records(save(stranger))
        live.reset()
    stranger.delete("/_ns/blue").raise_for_status()


def test_a_vote_after_a_load_reaches_the_directory_of_the_loaded_data(
    live: LiveServer, stranger: Client, viewer: Callable[..., Client], backend: Client
):
    """What the service remembers of users outside the data is forgotten."""
    empty = save(stranger)
    viewer("5").post("vote", json={"value": 1}).raise_for_status()
    load(stranger, empty)

    viewer("5").post("vote", json={"value": 1}).raise_for_status()

    assert '"5"' in backend.get("user_ids").text


def test_votes_during_a_save_are_all_kept_and_the_snapshot_shows_one_moment(
    stranger: Client, viewer: Callable[..., Client]
):
    for number in range(100):
        viewer(f"{number}").post("vote", json={"value": 1}).raise_for_status()
    one, two = (viewer(name, opaque=f"U{name}") for name in ("one", "two"))
    for each in (one, two):
        each.post("vote", json={"value": 9}).raise_for_status()
    is_saving, rounds = True, 0

    def vote() -> None:
        """Let one viewer vote for 0 to 9 again and again, and the other for the same each time."""
        nonlocal rounds
        while is_saving or rounds < 20:
            for each in (one, two):
                each.post("vote", json={"value": rounds % 10}).raise_for_status()
            rounds += 1

    with ThreadPoolExecutor(1) as threads:
        voting = threads.submit(vote)
        try:
            saved = []
            while rounds < 20 and not voting.done():
                saved.append(save(stranger))
        finally:
            is_saving = False
        voting.result()

    for each in saved:
        entries = [record for record in records(each) if record["type"] == "entry"]
        votes = {record["voter"]: int(record["choice"]) for record in entries}
        assert 102 == len(votes)
        assert (votes["Uone"] - votes["Utwo"]) % 10 in (0, 1)
    assert [(rounds - 1) % 10] * 2 == [each.get("vote").json()["vote"] for each in (one, two)]


def test_tokens_that_the_service_issued_stay_valid_after_a_load_without_keys(live: LiveServer, stranger: Client):
    body = {"app_id": CLIENT_ID, "channel_id": CHANNEL, "role": "viewer", "user_id": "5551"}
    token = stranger.post("/v1/e/authtoken", json=body).raise_for_status().json()["token"]

    load(stranger, save(stranger))

    assert 200 == live.bearer(token).get("vote").status_code


def test_a_service_adopts_the_signing_key_of_a_snapshot_with_keys(live: LiveServer, stranger: Client):
    with live_server() as other, Client(base_url=other.url) as client:
        token = client.post("/v1/e/pin", json={"identifier": CLIENT_ID}).raise_for_status().json()["token"]
        saved = save(client, keys="true")
    own = save(stranger, keys="true")

    load(stranger, saved)
    adopted = live.bearer(token).get("vote").json()["info"]
    load(stranger, own)

    assert "validate its PIN" in adopted


def test_subscribers_of_a_poll_receive_its_loaded_results_and_later_its_end(live: LiveServer, stranger: Client, game):
    live.freeze()
    create(game, config={"endsIn": 60})
    vote(live, "1", 2)
    saved = save(stranger)
    subscribe(game)
    vote(live, "2", 2)
    assert [0, 0, 2] == game.update()["data"]["results"]

    load(stranger, saved)
    assert [0, 0, 1] == game.update()["data"]["results"]
    live.advance(61_000)

    assert "expired" == game.update()["data"]["poll"]["status"]
