"""`PUT /_emulator/seed`: all of a seed, or nothing. Through extcli: `tests/cli/test_seed_command.py`."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.core.clock import DAY, HOUR
from emulator.core.settings import Limits, Settings
from support.authentication import authenticate
from support.codes import eligible, redeem
from support.faults import faults_of
from support.pins import token_exists
from support.records import records
from support.seeds import CHRISTMAS, CHRISTMAS_MS, PLACE, apply, details
from support.service import CHANNEL, OTHER_ID, Client, LiveServer, live_server
from support.socket_client import linked_game

EVERYTHING = {
    "clock": {"at": CHRISTMAS, "frozen": True},
    "polls": [
        {"id": "lunch", "prompt": "Where?", "options": ["A", "B"], "votes": {"U1": 0, "U2": 1, "5": 1}},
        {"id": "global-x", "total_votes_per_user": 3, "votes_per_option": 2, "distinct_options_per_user": 2,
         "ends_at": "2026-12-24T17:00:00Z", "votes": {"U1": [4, 4, 5]}},
    ],
    "rankings": [{"id": "color", "answers": {"U1": "blue", "U2": "red", "U3": "red"}}],
    "buffers": [{"id": "ratings", "entries": [{"user": "U1", "data": {"stars": 5}}, {"user": "U2", "data": None}]}],
    "stores": [
        {"store": "extension_state", "data": {"round": 1}},
        {"store": "channel_config", "data": {"theme": "dark"}, "channel": "888"},
        {"store": "viewer_state", "data": {"team": "red"}, "user": "U1"},
    ],
    "json_stores": [{"id": "highscore", "data": {"points": 7}}],
    "codes": [
        {"index": 0, "name": "Hat", "codes": ["HAT-1", "HAT-2"], "marked": {"U1": 2, "U2": 1}},
        {"index": 3, "name": "Cap", "codes": ["CAP-1"], "marked": {"U3": 1}},
        {"index": 0, "name": "Hat", "codes": ["HAT-1"], "client_id": OTHER_ID},
    ],
    "links": [{}, {"channel": "888"}],
}  # fmt: skip
"""A seed with something of every kind."""


def test_a_seeded_poll_has_its_definition_and_votes(live: LiveServer):
    apply(live, **EVERYTHING)
    viewer = live.client("viewer", user="U2", opaque="U2", channel=CHANNEL)

    lunch, ended = (viewer.get(f"vote?id={poll}").json() for poll in ("lunch", "global-x"))
    definitions = [viewer.get(f"vote_config?id={poll}").json() for poll in ("lunch", "global-x")]
    log = live.client("backend", channel=CHANNEL).get("vote_logs?id=lunch").json()["result"]

    assert ([1, 2], 1, [2, 1]) == (lunch["specific"][:2], lunch["vote"], ended["specific"][4:6])
    assert [("Where?", "active"), ("", "expired")] == [(each["prompt"], each["status"]) for each in definitions]
    assert 400 == viewer.post("vote?id=global-x", json={"value": 5}).status_code
    assert [("U1", "U1"), ("U2", "U2"), ("5", "U5")] == [(each["identifier"], each["opaque"]) for each in log]
    assert {CHRISTMAS_MS} == {each["timestamp"] for each in log}


def test_seeded_answers_entries_and_stores_can_be_read(live: LiveServer):
    apply(live, **EVERYTHING)
    backend = live.client("backend", channel=CHANNEL)

    assert [("red", 2), ("blue", 1)] == [tuple(each.values()) for each in backend.get("rank?id=color").json()["data"]]
    entries = backend.get("accumulate?id=ratings").json()["data"]
    assert [("U2", None), ("U1", {"stars": 5})] == [(each["user_id"], each["data"]) for each in entries]
    assert {"round": 1} == backend.get("extension_state").json()
    assert ({}, {"theme": "dark"}) == tuple(
        backend.get("channel_config", params={"channel_id": channel}).json() for channel in (CHANNEL, "888")
    )
    assert {"team": "red"} == backend.get("viewer_state", params={"userID": "U1"}).json()
    assert {"points": 7} == backend.get("json_store?id=highscore").json()


def test_marked_users_redeem_seeded_codes(live: LiveServer):
    apply(live, **EVERYTHING)
    one, three = (live.client("viewer", user=user, opaque=user, channel=CHANNEL) for user in ("U1", "U3"))

    assert ([2, 0, 0, 0], [0, 0, 0, 1]) == (eligible(one), eligible(three))
    assert ["HAT-1", "HAT-2", None] == [redeem(one).get("code") for _ in range(3)]
    assert "CAP-1" == redeem(three, 3)["code"]


def test_a_game_is_linked_by_the_refresh_token_of_a_seeded_link(live: LiveServer):
    links = apply(live, **EVERYTHING)["links"]

    with linked_game(live) as game:
        found = [authenticate(game, refresh=link["refresh"])["twitch_id"] for link in links]

    assert [CHANNEL, "888"] == found
    assert token_exists(live.client("broadcaster", user="888", channel="888"))


def test_a_seed_applied_twice_leaves_the_same_state(live: LiveServer):
    first = apply(live, **EVERYTHING)["links"][0]["refresh"]
    once = records(live)
    apply(live, **EVERYTHING)

    assert once == records(live)
    with linked_game(live) as game:
        assert CHANNEL == authenticate(game, refresh=first)["twitch_id"]


def test_everything_that_a_seed_does_not_name_stays(live: LiveServer):
    viewer = live.client("viewer", user="U9", opaque="U9", channel=CHANNEL)
    viewer.post("vote?id=dinner", json={"value": 3})
    viewer.post("rank?id=color", json={"key": "green"})

    apply(live, polls=[{"id": "lunch", "votes": {"U1": 0}}])

    assert 3 == viewer.get("vote?id=dinner").json()["vote"]
    assert 1 == len(live.client("backend", channel=CHANNEL).get("rank?id=color").json()["data"])


def test_a_clock_that_is_not_frozen_runs_on(live: LiveServer):
    live.freeze()

    apply(live, clock={"at": CHRISTMAS})

    with Client(base_url=live.url) as client:
        clock = client.get("/_emulator/clock").json()
    assert (False, True) == (clock["frozen"], 0 <= clock["now"] - CHRISTMAS_MS < HOUR)


def test_data_of_a_time_long_before_the_services_are_alive_afterwards(live: LiveServer, viewer):
    live.set(CHRISTMAS_MS + 400 * DAY)

    apply(live, clock={"at": CHRISTMAS, "frozen": True}, polls=[{"id": "lunch", "votes": {"U1": 2}}])

    assert 1 == viewer().get("vote?id=lunch").json()["count"]


def poll(**members: object) -> dict[str, object]:
    return {"polls": [{"id": "lunch", **members}]}


BAD_NAMES = {
    **{"channel": "", "polls": [{"id": "lunch", "votes": {"": 1, "a\0": 2}, "channel": "x" * 65}]},
    **{"rankings": [{"id": "r", "answers": {"\n": "x"}}], "stores": [{"store": "viewer_state", "data": {}}]},
    "buffers": [{"id": "b", "entries": [{"user": "", "data": 1}], "client_id": "a\0b"}],
}
SETS = [
    {"index": 0, "name": "A", "codes": ["X"], "client_id": OTHER_ID},
    {"index": 1, "name": "B", "codes": ["Y", ""]},
    {"index": 1, "name": "", "codes": ["Y"]},
]
ENTRIES = [{"user": "U1", "data": 1}, {"user": "U1", "data": "x" * 254}]
REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"extcli": 2, "colour": 1}, ["extcli", "colour"]),
    ({"polls": [{"id": "lunch"}, {"id": "other"}, {"id": "lunch", "votes": {"U1": 1}}]}, ["polls[2].id"]),
    (poll(ends_at="2026-12-24T18:00:00"), ["polls[0].ends_at"]),
    (poll(starts_at=CHRISTMAS, ends_at="2026-12-24T17:00:00Z"), ["polls[0].starts_at"]),
    ({"clock": {"at": "1970-01-01T00:00:00+01:00"}}, ["clock.at"]),
    (
        BAD_NAMES,
        ["channel", "stores[0].user", 'polls[0].votes[""]', 'polls[0].votes["a\\u0000"]', "polls[0].channel",
         'rankings[0].answers["\\n"]', "buffers[0].entries[0].user", "buffers[0].client_id"],
    ),
    (poll(options=["A", "B" * 129], votes={"U1": 200}), ["polls[0].options[1]", "polls[0].votes.U1"]),
    (poll(total_votes_per_user=2, votes={"U1": [0, 0]}), ["polls[0].votes.U1"]),
    (poll(starts_at="2999-01-01T00:00:00Z", votes={"a b": 0}), ['polls[0].votes["a b"]']),
    ({"rankings": [{"id": "x" * 65, "answers": {"U1": "a", "U2": "b"}}]}, ["rankings[0].id"]),
    ({"buffers": [{"id": "b", "entries": ENTRIES}]}, ["buffers[0].entries[1].data"]),
    ({"stores": [{"store": "state", "data": {}}]}, ["stores[0].store"]),
    ({"stores": [{"store": "extension_state", "data": [1]}]}, ["stores[0].data"]),
    ({"json_stores": [{"id": "high", "data": {"a": "x" * 2_048}}]}, ["json_stores[0].data"]),
    ({"codes": SETS}, ["codes[1].codes[1]", "codes[2].name"]),
    ({"codes": [SETS[1] | {"codes": ["Z"]}, SETS[2] | {"index": 2, "name": "A", "codes": ["Z"]}]}, ["codes"]),
    ({"codes": [{**SETS[2], "name": "A", "marked": {"\n": 1}}]}, ['codes[0].marked["\\n"]']),
    ({"links": [{}, {"channel": CHANNEL}]}, ["links[1].channel"]),
    ({"polls": [{"id": "global-a", "channel": name} for name in "AB"]}, ["polls[1].id"]),
    ({"stores": [{"store": "channel_state", "client_id": name, "data": {}} for name in "ab"]}, ["stores[1].store"]),
    ({"stores": [{"store": "extension_state", "channel": name, "data": {}} for name in "AB"]}, ["stores[1].store"]),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "fields"), REFUSED, ids=lambda each: each[0] if isinstance(each, list) else None)
def test_a_refused_seed_names_the_fields_and_changes_nothing(live: LiveServer, parts, fields):
    live.set(CHRISTMAS_MS)
    apply(live, **EVERYTHING)
    before = records(live)

    found = details(live, {**PLACE, "stores": [{"store": "extension_state", "data": {"round": 2}}], **parts})

    assert (fields, before, CHRISTMAS_MS) == ([each.partition(": ")[0] for each in found], records(live), live.now())


def test_twenty_problems_are_listed(live: LiveServer):
    votes = {f"U{number}": 100 for number in range(30)}

    assert 20 == len(details(live, {**PLACE, "polls": [{"id": f"p{each}", "votes": votes} for each in range(30)]}))


@pytest.mark.parametrize(
    ("settings", "seed", "field"),
    [
        (Settings(limits=Limits(ids=1)), {"polls": [{"id": each, "votes": {"U1": 1}} for each in "ab"]}, "polls[1].id"),
        (Settings(registered_only=True), {"polls": [{"id": "a", "votes": {"U1": 1}}]}, "polls[0].votes.U1"),
        (Settings(registered_only=True), {"links": [{}]}, "links[0]"),
    ],
)
def test_a_seed_is_held_to_the_options_of_the_service(settings: Settings, seed: dict[str, Any], field: str):
    with live_server(settings) as live:
        assert [field] == [each.partition(": ")[0] for each in details(live, {**PLACE, **seed})]


def test_a_seed_goes_into_its_namespace_only(live: LiveServer, viewer):
    with Client(base_url=f"{live.url}/_ns/blue") as client:
        client.put("/_emulator/seed", json=PLACE | EVERYTHING).raise_for_status()
        client.delete("/")

    assert 0 == viewer().get("vote?id=lunch").json()["count"]
    assert live.now() != CHRISTMAS_MS


def test_a_seed_can_exceed_the_usual_size_of_a_body(live: LiveServer, backend: Client):
    apply(live, codes=[{"index": 0, "name": "Hat", "codes": [f"CODE-{number:05}" for number in range(10_000)]}])

    assert [10_000] == backend.get("codes").json()["left"]


# Faults of a seed


REFUSED_VOTES = {"match": "POST /v1/e/vote", "effect": "status", "status": 503, "times": 3}
LOST_ROUND = {"match": "BROADCAST round-over", "effect": "lose", "lasts": 10_000, "id": "lost"}


def test_faults_of_a_seed_act_once_the_data_are_in(live: LiveServer, viewer):
    answer = apply(live, faults=[REFUSED_VOTES, LOST_ROUND], polls=[{"id": "lunch", "votes": {"U1": 0}}])

    assert 2 == answer["counts"]["faults"]
    assert ["seed-1", "lost"] == [each["id"] for each in faults_of(live)]
    assert [503, 503, 503, 200] == [viewer().post("vote", json={"value": 1}).status_code for _ in range(4)]
    assert 1 == viewer().get("vote", params={"id": "lunch"}).json()["count"]


def test_a_seed_applied_twice_leaves_the_same_faults_without_hits(live: LiveServer, viewer):
    apply(live, faults=[REFUSED_VOTES, LOST_ROUND])
    viewer().post("vote", json={"value": 1})
    assert [1, 0] == [each["hits"] for each in faults_of(live)]

    apply(live, faults=[REFUSED_VOTES, LOST_ROUND])

    assert [("seed-1", 0), ("lost", 0)] == [(each["id"], each["hits"]) for each in faults_of(live)]


def test_other_faults_stay_when_a_seed_is_applied_or_refused(live: LiveServer):
    with Client(base_url=live.url) as client:
        client.post("/_emulator/faults", json=LOST_ROUND | {"id": "mine"}).raise_for_status()

    apply(live, faults=[REFUSED_VOTES])
    apply(live)
    votes = {"faults": [LOST_ROUND], "polls": [{"id": "lunch", "votes": {"U1": 900}}]}
    for refused in (votes, {"faults": [REFUSED_VOTES] * 100}):
        assert details(live, PLACE | refused)

    assert ["mine", "seed-1"] == [each["id"] for each in faults_of(live)]


def test_a_seeded_fault_lasts_by_the_clock_of_the_seed(live: LiveServer):
    apply(live, clock={"at": CHRISTMAS, "frozen": True}, faults=[LOST_ROUND])

    assert CHRISTMAS_MS + 10_000 == faults_of(live)[0]["ends_at"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"match": "POST /v1/e/vot"}, "faults[1].match"),
        ({"effect": "lose"}, "faults[1].effect"),
        ({"status": "503"}, "faults[1].status"),
        ({"colour": 1}, "faults[1]"),
        *(({"id": each}, "faults[1].id") for each in ("lost", "a b", None, 0, {})),
    ],
)
def test_a_wrong_fault_refuses_the_whole_seed(live: LiveServer, wrong: dict[str, Any], field: str):
    before = records(live)
    seed = PLACE | {"faults": [LOST_ROUND, REFUSED_VOTES | wrong], "polls": [{"id": "lunch", "votes": {"U1": 0}}]}

    (found,) = details(live, seed)

    assert field == found.partition(": ")[0], found
    assert (before, []) == (records(live), faults_of(live))
