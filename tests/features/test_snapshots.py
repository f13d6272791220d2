"""Saving and loading all data of a service: `/_emulator/snapshot`."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.broadcasts import events_of
from support.service import Client, LiveServer
from support.socket_client import SocketClient

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


@pytest.mark.usefixtures("used")
def test_loading_replaces_everything(live: LiveServer, stranger: Client, viewer: Callable[..., Client]):
    live.reset()
    empty = save(stranger)
    viewer().post("vote", json={"value": 1}).raise_for_status()

    assert {"counts": {}, "keys": False} == load(stranger, empty)

    assert 0 == viewer().get("vote").json()["count"]


def test_the_first_line_names_format_version_environment_clock_and_counts(stranger: Client, viewer):
    viewer().post("vote", json={"value": 1}).raise_for_status()
    version = stranger.get("/_emulator/ready").json()["version"]

    first, *lines = save(stranger).decode().splitlines()

    header = json.loads(first.removesuffix(',"records":[') + "}")
    counts = header.pop("counts")
    assert {"extcli_snapshot": 1, "version": version, "environment": "sandbox", "clock": {}, "keys": False} == header
    assert len(lines) - 1 == sum(counts.values())
    assert 1 == counts["entry"]
    assert "]}" == lines[-1]


@pytest.mark.parametrize("frozen", [True, False])
def test_the_clock_is_restored(live: LiveServer, stranger: Client, frozen: bool):
    if frozen:
        live.set(5 * DAY)
    else:
        live.advance(3 * DAY)
    clock = stranger.get("/_emulator/clock").json()
    snapshot = save(stranger)
    live.reset()

    load(stranger, snapshot)

    loaded = stranger.get("/_emulator/clock").json()
    assert frozen == loaded["frozen"]
    if frozen:
        assert 5 * DAY == loaded["now"]
    else:
        assert clock["offset"] == loaded["offset"]


def test_records_that_expired_before_saving_are_not_saved(live: LiveServer, stranger: Client, viewer):
    live.freeze()
    viewer().post("accumulate", json=1).raise_for_status()
    live.advance(10 * DAY)

    assert [] == [record for record in records(save(stranger)) if record["type"] == "item"]


@pytest.mark.usefixtures("used")
def test_a_load_counts_what_a_save_then_counts(live: LiveServer, stranger: Client):
    live.freeze()
    header, *lines = save(stranger).splitlines()
    for days in (0, 1, 10, 100, 10_000):
        document = json.loads(header + b"]}")
        document["clock"]["frozen_at"] += days * DAY
        later = json.dumps(document, separators=(",", ":")).encode().removesuffix(b"]}")

        loaded = load(stranger, b"\n".join((later, *lines)))

        assert json.loads(save(stranger))["counts"] == loaded["counts"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"extcli_snapshot":1', '"extcli_snapshot":9', "line 1: extcli_snapshot: format 9 is unknown"),
        ('"sandbox"', '"production"', "line 1: environment: "),
        ('"clock":{}', '"clock":{"offset":-9000000000000000}', "line 1: clock: "),
        ('"clock":{}', '"clock":{"frozen_at":-1}', "line 1: clock: "),
        ('"ballot":2', '"ballot":3', "ballot: the first line counts 3 of them, but there are 2"),
        ('"type":"entry"', '"type":"enter"', "type: invalid value 'enter'"),
        ('"choice":"3"', '"choice":3', "choice: expected a string, got an integer"),
        ('"type":"member","key":["marked"', '"type":"member","key":["other"', "there is no roster with this key"),
        ('"type":"document","key":["channel_state"', '"type":"document","key":["viewer_state"', "not in order"),
        ('"number":1', '"number":2', "the pools of a key are numbered 1, 2, 3"),
        ("}\n]}", "},\n]}", "must not end with a comma"),
        ("\n]}", "", "incomplete"),
        ("\n]}", "\n]}\n{}", "there is text after the end"),
        ("\n", " ", "line 1: this is not the first line of a snapshot"),
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


def test_an_answer_with_a_nul_can_be_loaded(live: LiveServer, stranger: Client, viewer: Callable[..., Client]):
    viewer("1").post("rank", json={"key": "a\0b"}).raise_for_status()
    before = save(stranger)
    live.reset()

    load(stranger, before)

    assert before == save(stranger)


def test_more_votes_of_one_user_than_a_poll_allows_are_refused(stranger: Client, viewer: Callable[..., Client]):
    viewer("1").post("vote", json={"value": 3}).raise_for_status()
    before = save(stranger)
    lines = before.splitlines(keepends=True)
    [at] = [number for number, line in enumerate(lines) if b'"type":"entry"' in line]
    entry = json.loads(lines[at].rstrip(b",\n")) | {"times": (1 << 53) - 1}
    lines[at] = json.dumps(entry).encode() + (b",\n" if lines[at].endswith(b",\n") else b"\n")

    answer = stranger.put("/_emulator/snapshot", content=b"".join(lines))

    assert 400 == answer.status_code
    assert f"line {at + 1}: poll default in channel 777: times: {(1 << 53) - 1} is not within 1 to 1024" in answer.text
    assert before == save(stranger)


def test_an_invalid_value_of_keys_is_refused(stranger: Client):
    answer = stranger.get("/_emulator/snapshot", params={"keys": "yes"})

    assert (400, "keys: 'yes' is not true or false") == (answer.status_code, answer.json()["info"])


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


def test_subscriptions_survive_a_load(stranger: Client, admin: Client, admin_game: SocketClient):
    load(stranger, save(stranger))

    admin.post("broadcast", json={"event": "round", "data": 4}).raise_for_status()

    assert [("round", 4)] == [each[:2] for each in events_of(admin_game)]


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
