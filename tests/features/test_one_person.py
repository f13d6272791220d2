"""A viewer is one person before and after sharing their identity, whatever the token says (ruling A3)."""

from __future__ import annotations

import pytest

from support.people import SPELLINGS, Person
from support.pins import validated_pin_token
from support.service import CHANNEL, LiveServer


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
