"""`PUT /_emulator/seed`: all of a seed, or nothing. Through extcli: `tests/cli/test_seed_command.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator.clock import DAY, HOUR
from emulator.config.settings import Limits, Settings
from emulator.contract.names import CLIENT_ID_RULE
from engines.redis_server import RedisServer
from support.authentication import authenticate
from support.codes import eligible, redeem
from support.pins import token_exists
from support.records import records
from support.seeds import CHRISTMAS, CHRISTMAS_MS, PLACE, apply, details
from support.service import CHANNEL, OTHER_ID, Client, LiveServer, live_server
from support.socket_client import linked_game
from support.socket_polls import subscribe

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


@pytest.fixture(scope="module", params=["memory", "file", "redis"])
def running_engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder: Path = tmp_path_factory.mktemp("data")
    with ExitStack() as stack:
        if request.param == "redis":
            data = stack.enter_context(RedisServer(folder)).url()
        else:
            data = "sqlite://" if request.param == "memory" else f"sqlite://{folder}/emulator.db"
        yield stack.enter_context(live_server(Settings(data=data)))


@pytest.fixture
def service(running_engine: LiveServer) -> LiveServer:
    """A service on each engine, without data."""
    running_engine.reset()
    return running_engine


def test_a_seeded_poll_has_its_definition_and_votes(service: LiveServer):
    apply(service, **EVERYTHING)
    viewer = service.client("viewer", user="U2", opaque="U2", channel=CHANNEL)

    poll = viewer.get("vote?id=lunch").json()

    assert ([1, 2], 1) == (poll["specific"][:2], poll["vote"])
    assert ("Where?", "active") == tuple(
        viewer.get("vote_config?id=lunch").json()[name] for name in ("prompt", "status")
    )


def test_a_poll_that_has_ended_keeps_its_votes_and_takes_no_more(service: LiveServer):
    apply(service, **EVERYTHING)
    viewer = service.client("viewer", user="U1", opaque="U1", channel=CHANNEL)

    assert ([2, 1], "expired") == (
        viewer.get("vote?id=global-x").json()["specific"][4:6],
        viewer.get("vote_config?id=global-x").json()["status"],
    )
    assert 400 == viewer.post("vote?id=global-x", json={"value": 5}).status_code


def test_a_seeded_vote_is_replaced_by_the_users_own(service: LiveServer):
    apply(service, polls=[{"id": "lunch", "votes": {"U1": 0}}])

    answer = service.client("viewer", user="U1", opaque="U1", channel=CHANNEL).post("vote?id=lunch", json={"value": 1})

    assert (1, [0, 1]) == (answer.json()["count"], answer.json()["specific"][:2])


def test_seeded_voters_are_in_the_log_with_the_ids_they_share(service: LiveServer):
    apply(service, **EVERYTHING)

    log = service.client("backend", channel=CHANNEL).get("vote_logs?id=lunch").json()["result"]

    assert [("U1", "U1"), ("U2", "U2"), ("5", "U5")] == [(each["identifier"], each["opaque"]) for each in log]
    assert {CHRISTMAS_MS} == {each["timestamp"] for each in log}


def test_seeded_answers_entries_and_stores_can_be_read(service: LiveServer):
    apply(service, **EVERYTHING)
    backend = service.client("backend", channel=CHANNEL)

    assert [("red", 2), ("blue", 1)] == [tuple(each.values()) for each in backend.get("rank?id=color").json()["data"]]
    entries = backend.get("accumulate?id=ratings").json()["data"]
    assert [("U2", None), ("U1", {"stars": 5})] == [(each["user_id"], each["data"]) for each in entries]
    assert {"round": 1} == backend.get("extension_state").json()
    assert ({}, {"theme": "dark"}) == tuple(
        backend.get("channel_config", params={"channel_id": channel}).json() for channel in (CHANNEL, "888")
    )
    assert {"team": "red"} == backend.get("viewer_state", params={"userID": "U1"}).json()
    assert {"points": 7} == backend.get("json_store?id=highscore").json()


def test_marked_users_redeem_seeded_codes(service: LiveServer):
    apply(service, **EVERYTHING)
    one, three = (service.client("viewer", user=user, opaque=user, channel=CHANNEL) for user in ("U1", "U3"))

    assert ([2, 0, 0, 0], [0, 0, 0, 1]) == (eligible(one), eligible(three))
    assert ["HAT-1", "HAT-2", None] == [redeem(one).get("code") for _ in range(3)]
    assert "CAP-1" == redeem(three, 3)["code"]


def test_a_game_is_linked_by_the_refresh_token_of_a_seeded_link(service: LiveServer):
    links = apply(service, **EVERYTHING)["links"]

    with linked_game(service) as game:
        found = [authenticate(game, refresh=link["refresh"])["twitch_id"] for link in links]

    assert [CHANNEL, "888"] == found
    assert token_exists(service.client("broadcaster", user="888", channel="888"))


def test_a_refresh_token_stays_valid_when_the_seed_is_applied_again(service: LiveServer):
    first = apply(service, **EVERYTHING)["links"][0]["refresh"]
    apply(service, **EVERYTHING)

    with linked_game(service) as game:
        assert CHANNEL == authenticate(game, refresh=first)["twitch_id"]


def test_a_seed_applied_twice_leaves_the_same_state(service: LiveServer):
    apply(service, **EVERYTHING)
    once = records(service)
    apply(service, **EVERYTHING)

    assert once == records(service)


def test_applying_a_seed_again_restores_changed_records(service: LiveServer):
    parts = {name: part for name, part in EVERYTHING.items() if name != "codes"}
    apply(service, **parts)
    before = records(service)
    service.client("viewer", user="U1", opaque="U1", channel=CHANNEL).post("vote?id=lunch", json={"value": 9})
    service.client("backend", channel=CHANNEL).post("extension_state", json={})

    apply(service, **parts)

    assert before == [each for each in records(service) if not each[0].kind.startswith("id")]


def test_everything_that_a_seed_does_not_name_stays(service: LiveServer):
    viewer = service.client("viewer", user="U9", opaque="U9", channel=CHANNEL)
    viewer.post("vote?id=dinner", json={"value": 3})
    viewer.post("rank?id=color", json={"key": "green"})

    apply(service, polls=[{"id": "lunch", "votes": {"U1": 0}}])

    assert 3 == viewer.get("vote?id=dinner").json()["vote"]
    assert 1 == len(service.client("backend", channel=CHANNEL).get("rank?id=color").json()["data"])


def test_a_clock_is_set_and_frozen(live: LiveServer):
    apply(live, clock={"at": CHRISTMAS, "frozen": True})

    assert [CHRISTMAS_MS] * 2 == [live.now(), live.now()]


def test_a_clock_that_is_not_frozen_runs_on(live: LiveServer):
    live.freeze()

    apply(live, clock={"at": CHRISTMAS})

    with Client(base_url=live.url) as client:
        clock = client.get("/_emulator/clock").json()
    assert (False, True) == (clock["frozen"], 0 <= clock["now"] - CHRISTMAS_MS < HOUR)


def test_a_clock_can_be_frozen_at_its_current_time(live: LiveServer):
    live.set(CHRISTMAS_MS, freeze=False)

    apply(live, clock={"frozen": True})

    assert live.now() == live.now() >= CHRISTMAS_MS


def test_without_a_clock_the_data_have_the_services_time(live: LiveServer, broadcaster: Client):
    live.set(CHRISTMAS_MS)

    apply(live, buffers=[{"id": "ratings", "entries": [{"user": "U1", "data": 1}]}])

    assert CHRISTMAS_MS == live.now() == broadcaster.get("accumulate?id=ratings").json()["latest"]


def test_data_of_a_time_long_before_the_services_are_alive_afterwards(live: LiveServer, viewer):
    live.set(CHRISTMAS_MS + 400 * DAY)

    apply(live, clock={"at": CHRISTMAS, "frozen": True}, polls=[{"id": "lunch", "votes": {"U1": 2}}])

    assert 1 == viewer().get("vote?id=lunch").json()["count"]


def test_subscribers_of_a_poll_receive_its_seeded_votes(live: LiveServer):
    with linked_game(live) as game:
        subscribe(game, "lunch")
        apply(live, polls=[{"id": "lunch", "votes": {"U1": 2}}])

        assert [0, 0, 1] == game.update()["data"]["results"][:3]


def test_a_seed_can_exceed_the_usual_size_of_a_body(live: LiveServer, backend: Client):
    codes = [f"CODE-{number:05}" for number in range(10_000)]

    apply(live, codes=[{"index": 0, "name": "Hat", "codes": codes}])

    assert [10_000] == backend.get("codes").json()["left"]


REFUSED = {
    "another version": ({"extcli": 2}, ["extcli: this service reads version 1 of seeds, not 2"]),
    "an unknown field": ({"colour": 1}, ["object contains unknown field `colour`"]),
    "another type": ({"polls": [{"id": 5}]}, ["polls[0].id: expected a string, got an integer"]),
    "a time without a zone": (
        {"polls": [{"id": "lunch", "ends_at": "2026-12-24T18:00:00"}]},
        ["polls[0].ends_at: expected a date and time with a timezone component"],
    ),
    "a time before 1970": (
        {"clock": {"at": "1970-01-01T00:00:00+01:00"}},
        ["clock.at: must be in the years 1970 to 9999, in UTC"],
    ),
    "an invalid id": (
        {"polls": [{"id": "a b", "prompt": "Where?"}]},
        ["polls[0].id: must be 1 to 64 letters, digits, '$', '-' and '_', and not just 'global-'"],
    ),
    "names that no token has": (
        {"channel": "", "polls": [{"id": "lunch", "votes": {"": 1, "a\0": 2}, "channel": "x" * 65}],
         "rankings": [{"id": "r", "answers": {"\n": "x"}}], "stores": [{"store": "viewer_state", "data": {}}],
         "buffers": [{"id": "b", "entries": [{"user": "", "data": 1}], "client_id": "a\0b"}]},
        ["channel: must be 1 to 64 printable characters",
         "polls[0].channel: must be 1 to 64 printable characters",
         "buffers[0].client_id: must be " + CLIENT_ID_RULE,
         'polls[0].votes[""]: must be 1 to 256 printable characters',
         'polls[0].votes["a\\u0000"]: must be 1 to 256 printable characters',
         'rankings[0].answers["\\n"]: must be 1 to 256 printable characters',
         "buffers[0].entries[0].user: must be 1 to 256 printable characters",
         "stores[0].user: must be 1 to 256 printable characters"],
    ),
    "an invalid definition": (
        {"polls": [{"id": "lunch", "options": ["A", "B" * 129], "votes": {"U1": 200}}]},
        ["polls[0].options[1]: has 129 bytes; the limit is 128"],
    ),
    "names of several words": (
        {"polls": [{"id": "lunch", "total_votes_per_user": 0}, {"id": "dinner", "user_data": "x" * 1_025}]},
        ["polls[0].total_votes_per_user: 0 is not within 1 to 1024",
         "polls[1].user_data: has 1027 bytes of JSON; the limit is 1024"],
    ),
    "an invalid vote": (
        {"polls": [{"id": "lunch", "votes": {"U1": 0, "a b": 100}}]},
        ['polls[0].votes["a b"]: value: 100 is not within -99 to 99'],
    ),
    "a vote too many": (
        {"polls": [{"id": "lunch", "total_votes_per_user": 2, "votes": {"U1": [0, 0]}}]},
        ["polls[0].votes.U1: the vote would exceed the poll's votes per user, votes per option or options per user"],
    ),
    "an id that is too long": (
        {"rankings": [{"id": "x" * 65, "answers": {"U1": "a", "U2": "b"}}]},
        ["rankings[0].id: must be 1 to 64 printable characters"],
    ),
    "a value that is too large": (
        {"buffers": [{"id": "b", "entries": [{"user": "U1", "data": 1}, {"user": "U1", "data": "x" * 254}]}]},
        ["buffers[0].entries[1].data: the body is 256 bytes as compact JSON; it must be under 256"],
    ),
    "an unknown store": (
        {"stores": [{"store": "state", "data": {}}]},
        ["stores[0].store: invalid enum value 'state'"],
    ),
    "a store that is not an object": (
        {"stores": [{"store": "extension_state", "data": [1]}]},
        ["stores[0].data: extension_state must be a JSON object"],
    ),
    "a JSON store that is too large": (
        {"json_stores": [{"id": "high", "data": {"a": "x" * 2_048}}]},
        ["json_stores[0].data: json_store would be 2056 bytes of compact JSON; the limit is 2048"],
    ),
    "invalid codes": (
        {"codes": [{"index": 0, "name": "A", "codes": ["X"], "client_id": OTHER_ID},
                   {"index": 1, "name": "B", "codes": ["Y", ""]}, {"index": 1, "name": "", "codes": ["Y"]}]},
        ["codes[1].codes[1]: has 0 characters; a code has 1 to 63",
         "codes[2].name: must be 1 to 256 printable characters", "codes[].index: must be unique"],
    ),
    "a code in two sets": (
        {"codes": [{"index": 0, "name": "A", "codes": ["X", "Z"]}, {"index": 1, "name": "B", "codes": ["Z"]}]},
        ["codes[0].codes[1] and codes[1].codes[0]: are the same code"],
    ),
    "an invalid marked user": (
        {"codes": [{"index": 0, "name": "A", "codes": ["X"], "marked": {"\n": 1}}]},
        ["codes[0].marked: users[0]: must be a string of 1 to 256 printable characters"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "expected"), REFUSED.values(), ids=REFUSED)
def test_a_refused_seed_names_the_fields_and_changes_nothing(live: LiveServer, parts, expected):
    live.set(CHRISTMAS_MS)
    apply(live, **EVERYTHING)
    before = records(live)

    found = details(live, {**PLACE, "stores": [{"store": "extension_state", "data": {"round": 2}}], **parts})

    assert (expected, before, CHRISTMAS_MS) == (found, records(live), live.now())


def test_twenty_problems_are_listed(live: LiveServer):
    votes = {f"U{number}": 100 for number in range(30)}

    assert 20 == len(details(live, {**PLACE, "polls": [{"id": f"p{each}", "votes": votes} for each in range(30)]}))


def test_a_seed_is_held_to_the_options_of_the_service():
    with live_server(Settings(limits=Limits(ids=1))) as live:
        found = details(live, {**PLACE, "polls": [{"id": "a", "votes": {"U1": 1}}, {"id": "b", "votes": {"U1": 1}}]})

        assert ["polls[1].id: 1 of this kind are in use in channel 777; the limit is 1"] == found


def test_a_seed_names_a_registered_client_id():
    with live_server(Settings(registered_only=True)) as live:
        poll = details(live, {**PLACE, "polls": [{"id": "a", "votes": {"U1": 1}}]})
        link = details(live, {**PLACE, "links": [{}]})

    refusal = "the client id is not a registered extension"
    assert ["polls[0].votes.U1: " + refusal, "links[0]: " + refusal] == [*poll, *link]


def test_a_seed_goes_into_its_namespace_only(live: LiveServer, viewer):
    with Client(base_url=f"{live.url}/_ns/blue") as client:
        client.put("/_emulator/seed", json=PLACE | EVERYTHING).raise_for_status()
        client.delete("/")

    assert 0 == viewer().get("vote?id=lunch").json()["count"]
    assert live.now() != CHRISTMAS_MS


def test_production_has_no_seeds(production: LiveServer):
    with Client(base_url=production.url) as client:
        assert 404 == client.put("/_emulator/seed", json=PLACE).status_code
