"""A viewer is one person before and after sharing their identity, whatever the token says (ruling A3)."""

from __future__ import annotations

import pytest

from support.codes import define, eligible, grant, redeem, redeemed
from support.people import SPELLINGS, Person
from support.pins import validated_pin_token
from support.service import CHANNEL, LiveServer
from support.trivia import create_question, results, set_state


@pytest.fixture(params=["live", "production"])
def person(request: pytest.FixtureRequest) -> Person:
    """A viewer of the sandbox, then of production."""
    return Person(request.getfixturevalue(request.param))


def test_a_linked_game_votes_as_the_broadcaster_of_its_channel(live: LiveServer):
    broadcaster = live.client("broadcaster", user=CHANNEL, opaque="UBROADCASTER")
    broadcaster.post("vote", json={"value": 1}).raise_for_status()
    game = live.bearer(validated_pin_token(live.url))

    seen = game.get("vote").json()["vote"]
    game.post("vote", json={"value": 2}).raise_for_status()

    answer = broadcaster.get("vote").json()
    assert (1, 1, 2) == (seen, answer["count"], answer["vote"])


@pytest.mark.parametrize("store", ["viewer_state", "extension_viewer_state"])
def test_a_person_keeps_their_stores(person: Person, store: str):
    person.anonymous.post(store, json={"xp": 1}).raise_for_status()
    person.shared.patch(store, json={"level": 2}).raise_for_status()
    person.named.patch(store, json={"team": "red"}).raise_for_status()

    state = {"xp": 1, "level": 2, "team": "red"}
    assert [state] * 3 == [getattr(person, spelling).get(store).json() for spelling in SPELLINGS]
    assert state == person.named.get("all_state").json()["viewer" if store == "viewer_state" else "extension_viewer"]
    assert dict.fromkeys(person.ids, state) == person.admin.get(store, params={"user_ids": ",".join(person.ids)}).json()
    assert [state] * 3 == [person.backend.get(store, params={"userID": each}).json() for each in person.ids]


def test_an_admin_patches_a_person_under_any_spelling(person: Person):
    person.share()

    for number, spelling in enumerate(person.ids):
        person.admin.patch("viewer_state", json={spelling: {f"key{number}": {}}}).raise_for_status()

    assert {"key0": {}, "key1": {}, "key2": {}} == person.anonymous.get("viewer_state").json()


def test_a_map_of_users_that_names_one_person_twice_is_refused(person: Person):
    person.share()
    twice = {person.opaque_id: {"a": 1}, person.shared_id: {"a": 2}}

    answer = person.admin.patch("viewer_state", json=twice)

    assert 400 == answer.status_code
    assert {} == person.shared.get("viewer_state").json()


@pytest.mark.parametrize("listed", range(3))
def test_a_listed_person_redeems_once_under_any_spelling(person: Person, listed: int):
    define(person.backend, [f"{person.poll}-{number}" for number in range(3)])
    grant(person.backend, person.ids[listed], prizes=[0], limits=[1])
    person.share()

    before = [eligible(getattr(person, spelling)) for spelling in SPELLINGS]
    codes = [redeem(getattr(person, spelling)).get("code") for spelling in SPELLINGS]

    assert ([[1]] * 3, [f"{person.poll}-0", None, None]) == (before, codes)
    assert [[[f"{person.poll}-0"]]] * 3 == [redeemed(getattr(person, spelling)) for spelling in SPELLINGS]


def test_a_person_has_one_trivia_vote_and_one_team(person: Person):
    create_question(person.admin, person.poll)
    for option, spelling in zip(("o1", "o2", "o1"), SPELLINGS, strict=True):
        body = {"question_id": person.poll, "vote": option}
        getattr(person, spelling).post("curated_poll", json=body).raise_for_status()

    set_state(person.admin, "state-results", person.poll)

    (team,) = person.admin.get("curated_poll_leaderboard").json()["leaderboard"]
    assert 1 == team["questions"][person.poll]["team_votes"]
    assert ["o1"] * 3 == [results(getattr(person, spelling), person.poll)["you"] for spelling in SPELLINGS]
    assert [CHANNEL] * 3 == [getattr(person, each).get("team_membership").json()["id"] for each in SPELLINGS]


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("spelling", range(3))
def test_a_whisper_under_any_spelling_reaches_a_person_once(person: Person, spelling: int, shares: bool):
    games = [person.socket(each) for each in SPELLINGS]
    if shares:
        person.share()
    for game in games:
        game.data("subscribe", "news")

    target = {"event": "news", "data": {}, "target": f"whisper-{person.ids[spelling]}"}
    person.admin.post("broadcast", json=target).raise_for_status()

    # Without a write, nothing connects the opaque id of the first token with the shared id of the third.
    unreachable = () if shares else (2,) if spelling == 2 else (0,)
    for number, game in enumerate(games):
        if number not in unreachable:
            assert "news" == game.update()["data"]["event"]
        assert game.no_update()
        game.socket.close()


def test_a_whisper_to_all_spellings_of_a_person_reaches_them_once(person: Person):
    person.share()
    with person.socket("admin") as owner, person.socket("anonymous") as game:
        game.data("subscribe", "news")

        owner.data("broadcast", data={"topic": "news", "data": {}, "ids": list(person.ids)})

        assert "news" == game.update()["data"]["event"]
        assert game.no_update()


def test_the_log_names_the_shared_id_once_a_later_write_reveals_it(person: Person):
    person.vote(person.anonymous, 1)
    person.shared.get("vote").raise_for_status()
    unshared = person.log()

    person.share()

    assert [(person.opaque_id, person.opaque_id, 1)] == unshared
    assert [(person.shared_id, person.opaque_id, 1)] == person.log()
