"""Poll definitions: limits, opening times and status (rulings P4, P5)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from support.service import Client, LiveServer
from support.socket_client import linked_game

SECOND = 1_000


def define(client: Client, poll: str = "default", **config: Any) -> httpx.Response:
    return client.post("vote_config", json={"id": poll, "config": config})


def definition(client: Client, poll: str = "default") -> dict[str, Any]:
    return client.get(f"vote_config?id={poll}").raise_for_status().json()


def vote(client: Client, value: int = 1, **fields: Any) -> httpx.Response:
    return client.post("vote", json={"value": value, **fields})


def refused(answer: httpx.Response) -> str | None:
    """The detail of a refusal because the poll is closed; `None` if the vote counts."""
    return answer.json()["info"] if answer.json().get("reason") == "poll is closed" else None


@pytest.fixture
def noon(live) -> int:
    """Stops the clock at a whole second; returns it in Unix seconds."""
    second = live.now() // SECOND + 1
    live.set(second * SECOND)
    return second


@pytest.mark.parametrize(
    "config",
    [
        {"options": ["o"] * 64},
        {"options": ["é" * 64]},
        {"prompt": "é" * 128},
        {"userData": "é" * 511},
        {"userData": 10**30},
        {"distinctOptionsPerUser": 258, "totalVotesPerUser": 1024, "votesPerOption": 1024},
        {"startsAt": 5, "endsAt": 5},
        {"endsIn": 1, "startsIn": 1},
        {"unknown": True},
    ],
)
def test_a_definition_at_its_limits_is_accepted(broadcaster, config):
    assert 200 == define(broadcaster, **config).status_code


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"options": ["a", "é" * 64 + "x"]}, "options[1]"),
        ({"userData": "é" * 511 + "x"}, "userData"),
        ({"startsIn": 6, "endsIn": 5}, "startsAt"),
        ({"startsIn": 6, "endsAt": -1}, "startsAt"),
        ({"endsAt": -2}, "endsAt"),
        ({"startsIn": 2**63}, "startsIn"),
    ],
)
def test_a_definition_beyond_its_limits_is_refused_and_changes_nothing(broadcaster, config, field):
    define(broadcaster, prompt="before")

    answer = define(broadcaster, **config)

    assert (400, "Invalid body") == (answer.status_code, answer.json()["reason"])
    assert answer.json()["info"].startswith(field)
    assert "before" == definition(broadcaster)["prompt"]


@pytest.mark.parametrize(
    ("config", "starts", "ends"),
    [
        ({"startsIn": 10, "endsIn": 20}, 10, 20),
        ({"startsIn": 10, "endsIn": 20, "startsAt": ..., "endsAt": ...}, 1, 2),
    ],
)
def test_starts_in_and_ends_in_are_seconds_from_now_unless_instants_are_given(
    viewer, broadcaster, noon, config, starts, ends
):
    given = {name: noon + (starts if "starts" in name else ends) for name, value in config.items() if value is ...}
    define(broadcaster, **{**config, **given})

    assert (noon + starts, noon + ends) == (definition(viewer())["startsAt"], definition(viewer())["endsAt"])


def test_ends_at_minus_one_ends_the_poll_now(live, viewer, broadcaster, noon):
    live.advance(999)
    vote(viewer())

    define(broadcaster, endsAt=-1)

    assert ("expired", noon) == (definition(viewer())["status"], definition(viewer())["endsAt"])
    assert "the poll has ended" == refused(vote(viewer(), 2))
    assert (1, 1) == (lambda poll: (poll["count"], poll["vote"]))(viewer().get("vote").json())


def test_a_poll_with_ends_in_1_is_open_for_at_least_a_second(live, broadcaster, viewer):
    live.set(1_700_000_000_999)
    define(broadcaster, endsIn=1)

    live.advance(1_000)
    in_time = refused(vote(viewer("U1")))
    live.advance(1)

    assert (None, "the poll has ended") == (in_time, refused(vote(viewer("U2"))))


def test_a_poll_opens_at_the_second_at_which_it_starts(live, broadcaster, viewer, noon):
    define(broadcaster, startsAt=noon + 1)

    live.advance(999)
    early = refused(vote(viewer("U1")))
    live.advance(1)

    assert ("the poll has not started", None) == (early, refused(vote(viewer("U1"))))
    define(broadcaster, startsAt=noon + 9, disabled=True)
    assert "the poll is disabled" == refused(vote(viewer("U1")))


def test_an_edit_succeeds_only_while_the_definition_is_as_it_was_read(broadcaster: Client):
    first = {"config": {"prompt": "one", "userData": 1}, "expected": {}}
    assert [200, 409] == [broadcaster.post("vote_config", json=first).status_code for _ in range(2)]
    read = definition(broadcaster)
    second = {"config": {"prompt": "two", "userData": 2}, "expected": read}
    assert 200 == broadcaster.post("vote_config", json=second).status_code

    answer = broadcaster.post("vote_config", json={"config": {"prompt": "three"}, "expected": read})

    assert (409, True) == (answer.status_code, answer.json()["info"].endswith("prompt, userData"))
    assert "two" == definition(broadcaster)["prompt"]


def test_a_poll_is_restarted_in_one_step(broadcaster: Client, viewer):
    define(broadcaster, prompt="one")
    vote(viewer("U1"))
    read = definition(broadcaster)
    again = {"config": {"prompt": "one", "options": ["a"]}, "expected": read, "restart": True}

    assert [200, 409] == [broadcaster.post("vote_config", json=again).status_code for _ in range(2)]
    assert 0 == broadcaster.get("vote").json()["count"]
    assert ["a"] == definition(broadcaster)["options"]


def test_edits_of_one_poll_at_once_all_take_effect(live: LiveServer, broadcaster: Client):
    define(broadcaster, prompt="before")
    members: list[dict[str, Any]] = [{"prompt": "after"}, {"userData": 7}, {"votesPerOption": 2}, {"disabled": True}]

    with ExitStack() as opened:
        games = [opened.enter_context(linked_game(live)) for _ in members]
        for game, member in zip(games, members, strict=True):
            game.send("reconfigure", "poll", {"poll_id": "default", "config": member})
        replies = [game.reply() for game in games]

    assert [] == [each for each in replies if "errors" in each]
    assert {**definition(broadcaster), **members[0], **members[1], **members[2], **members[3]} == definition(
        broadcaster
    )
