"""Poll definitions: limits, opening times and status (rulings P4, P5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from emulator.callers import Caller, Role
from emulator.features.votes.service import Polls
from support.service import Client, LiveServer

pytestmark = pytest.mark.ruling("P4")

SECOND = 1_000


def define(client: Client, poll: str = "default", **config: Any) -> httpx.Response:
    return client.post("vote_config", json={"id": poll, "config": config})


def definition(client: Client, poll: str = "default") -> dict[str, Any]:
    return client.get(f"vote_config?id={poll}").raise_for_status().json()


def vote(client: Client, value: int = 1, **fields: Any) -> httpx.Response:
    return client.post("vote", json={"value": value, **fields})


def refused(answer: httpx.Response) -> str | None:
    """The reason of a refusal; `None` if the vote counts."""
    return answer.json()["reason"] if answer.status_code == 400 else None


@pytest.fixture
def noon(live) -> int:
    """Stops the clock at a whole second; returns it in Unix seconds."""
    second = live.now() // SECOND + 1
    live.set(second * SECOND)
    return second


def test_a_definition_without_an_id_uses_the_id_of_the_query(viewer, broadcaster):
    broadcaster.post("vote_config", json={"config": {"prompt": "default"}})
    broadcaster.post("vote_config?id=x", json={"config": {"prompt": "x"}, "id": ""})
    broadcaster.post("vote_config?id=y", json={"config": {"prompt": "z"}, "id": "z"})

    assert ["default", "x", "z"] == [definition(viewer(), poll)["prompt"] for poll in ("default", "x", "z")]
    assert 404 == viewer().get("vote_config?id=y").status_code


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
        ({"startsAt": 6, "endsAt": 5}, "startsAt"),
        ({"startsIn": 6, "endsIn": 5}, "startsAt"),
        ({"startsIn": 6, "endsAt": -1}, "startsAt"),
        ({"endsAt": -2}, "endsAt"),
        ({"startsIn": 2**63}, "startsIn"),
        ({"global": True}, "global"),
    ],
)
def test_a_definition_beyond_its_limits_is_refused_and_changes_nothing(broadcaster, config, field):
    define(broadcaster, prompt="before")

    answer = define(broadcaster, **config)

    assert (400, "Invalid body") == (answer.status_code, answer.json()["reason"])
    assert answer.json()["info"].startswith(field)
    assert "before" == definition(broadcaster)["prompt"]


@pytest.mark.parametrize("poll", ["a" * 65, "global-", "a.b", "é", "a\u0000"])
def test_a_definition_with_an_invalid_poll_id_is_refused(broadcaster, poll):
    assert "Invalid poll id" == define(broadcaster, poll).json()["reason"]


def test_a_poll_is_open_from_starts_at_until_before_ends_at(live, viewer, broadcaster, noon):
    define(broadcaster, startsAt=noon + 10, endsAt=noon + 20)
    seen = []

    for instant in (10 * SECOND - 1, 10 * SECOND, 20 * SECOND - 1, 20 * SECOND):
        live.set(noon * SECOND + instant)
        seen.append((definition(viewer())["status"], refused(vote(viewer()))))

    closed = "poll is closed"
    assert [("pending", closed), ("active", None), ("active", None), ("expired", closed)] == seen


def test_starts_in_and_ends_in_are_seconds_from_now(viewer, broadcaster, noon):
    define(broadcaster, startsIn=10, endsIn=20)

    assert (noon + 10, noon + 20) == (definition(viewer())["startsAt"], definition(viewer())["endsAt"])


def test_starts_at_and_ends_at_override_starts_in_and_ends_in(viewer, broadcaster, noon):
    define(broadcaster, startsAt=noon + 1, startsIn=10, endsAt=noon + 2, endsIn=20)

    assert (noon + 1, noon + 2) == (definition(viewer())["startsAt"], definition(viewer())["endsAt"])


def test_ends_at_minus_one_ends_the_poll_now(live, viewer, broadcaster, noon):
    live.advance(999)
    vote(viewer())

    define(broadcaster, endsAt=-1)

    assert ("expired", noon) == (definition(viewer())["status"], definition(viewer())["endsAt"])
    assert "poll is closed" == refused(vote(viewer(), 2))
    assert (1, 1) == (lambda poll: (poll["count"], poll["vote"]))(viewer().get("vote").json())


def test_a_poll_with_ends_in_1_is_open_for_at_least_a_second(live, broadcaster, viewer):
    live.set(1_700_000_000_999)
    define(broadcaster, endsIn=1)

    live.advance(1_000)
    in_time = refused(vote(viewer("U1")))
    live.advance(1)

    assert (None, "poll is closed") == (in_time, refused(vote(viewer("U2"))))


def test_an_edit_of_a_definition_that_has_changed_since_is_refused(broadcaster: Client):
    define(broadcaster, prompt="one", userData=1)
    read = definition(broadcaster)
    define(broadcaster, prompt="two", userData=2)

    answer = broadcaster.post("vote_config", json={"config": {"prompt": "three"}, "expected": read})

    assert (409, "Poll changed") == (answer.status_code, answer.json()["reason"])
    assert "expected: the definition has changed since it was read: prompt, userData" == answer.json()["info"]
    assert "two" == definition(broadcaster)["prompt"]


def test_an_edit_of_the_present_definition_or_of_none_succeeds(broadcaster: Client):
    first = {"config": {"prompt": "one"}, "expected": {}}
    broadcaster.post("vote_config", json=first).raise_for_status()
    assert 409 == broadcaster.post("vote_config", json=first).status_code

    read = definition(broadcaster)
    broadcaster.post("vote_config", json={"config": {"prompt": "two"}, "expected": read}).raise_for_status()
    assert "two" == definition(broadcaster)["prompt"]


async def _reconfigure_at_once(polls: Polls, caller: Caller, members: Sequence[dict[str, Any]]) -> None:
    await asyncio.gather(*(polls.reconfigure(caller, "777", "default", each) for each in members))


def test_edits_of_one_poll_at_once_all_take_effect(live: LiveServer, broadcaster: Client):
    define(broadcaster, prompt="before")
    caller = Caller("my-extension", Role.BROADCASTER, "777", "777", "U777", None)
    members = [{"prompt": "after"}, {"userData": 7}, {"options": ["a", "b"]}, {"disabled": True}]

    live.run(_reconfigure_at_once(live.service.polls, caller, members))

    found = definition(broadcaster)
    assert all(member.items() <= found.items() for member in members)
