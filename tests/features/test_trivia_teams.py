"""Trivia teams and the leaderboard (rest-clients 2.12)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.connection import Connection
from support.service import Client, LiveServer
from support.trivia import create_question, results, set_state, team, vote


def leaderboard(admin: Client) -> list[dict[str, Any]]:
    return list(admin.get("curated_poll_leaderboard").raise_for_status().json()["leaderboard"])


def scores(admin: Client) -> list[tuple[str, int]]:
    return [(each["team_id"], each["combined_score"]) for each in leaderboard(admin)]


def owner(live: LiveServer, channel: str) -> Client:
    return live.client("broadcaster", user=channel, channel=channel)


@pytest.mark.parametrize("joins", [False, True])
def test_the_first_vote_or_joining_sets_the_team_permanently(admin, viewer, joins: bool):
    create_question(admin)
    before = team(viewer())

    if joins:
        viewer(channel="777").post("team_membership").raise_for_status()
    else:
        vote(viewer(channel="777"))
    vote(viewer(channel="888"))
    joined = viewer(channel="888").post("team_membership").json()

    assert ("", {"id": "777"}, "777") == (before, joined, team(viewer(channel="888")))


@pytest.mark.parametrize(
    ("state", "option"), [("state-locked", "o1"), ("state-inactive", "o1"), ("state-unlocked", "o9")]
)
def test_a_refused_vote_sets_no_team(admin, viewer, state: str, option: str):
    create_question(admin, state=state)

    assert vote(viewer(), option) in (400, 404)
    assert "" == team(viewer())


async def test_a_vote_concurrent_with_a_change_of_state_counts_or_is_refused(live, admin, viewer):
    create_question(admin)

    async def cast(user: int) -> int:
        async with Connection(live, viewer(str(user))) as voter:
            return (await voter.send("curated_poll", {"question_id": "q1", "vote": "o1"}))[0]

    async def lock() -> int:
        async with Connection(live, admin) as editor:
            return (await editor.send("curated_poll_state?id=q1", {"transition": "state-results", "winner": "o1"}))[0]

    before, locked, after = (map(cast, range(60)), lock(), map(cast, range(60, 120)))
    statuses = await asyncio.gather(*before, locked, *after)

    votes = statuses[:60] + statuses[61:]
    taken = sum(row["questions"]["q1"]["team_votes"] for row in leaderboard(admin))
    assert (200, {200, 400}) == (statuses[60], {200, 400} | set(votes))
    assert taken == votes.count(200)


def test_a_broadcasters_team_is_their_own_channel(live: LiveServer, admin):
    create_question(admin)
    watching = live.client("viewer", user="888", channel="777")

    vote(watching, "o2")
    before = team(watching)
    vote(owner(live, "888"))

    assert ("777", "888") == (before, team(watching))
    set_state(admin, "state-results")
    (row,) = leaderboard(admin)
    assert ("888", True, 1) == (row["team_id"], row["questions"]["q1"]["broadcaster_correct"],
                                row["questions"]["q1"]["team_votes"])  # fmt: skip


def test_without_a_channel_a_user_can_neither_join_nor_vote(admin, backend):
    create_question(admin)

    answers = [backend.post("team_membership"), backend.post("curated_poll", json={"question_id": "q1", "vote": "o1"})]

    assert [400, 400] == [each.status_code for each in answers]
    assert {} == results(backend)
    assert {"id": "888"} == backend.post("team_membership?channel_id=888").json()
    assert 200 == vote(backend)


def test_a_leaderboard_entry_explains_its_score(live: LiveServer, admin, viewer):
    create_question(admin)
    vote(owner(live, "777"))
    vote(viewer("1"))
    vote(viewer("2"), "o2")
    for user in "345":
        viewer(user).post("team_membership")

    set_state(admin, "state-results")

    score = {
        "question_id": "q1",
        "broadcaster_correct": True,
        "team_participation": 0.5,
        "team_participants": 3,
        "percent_correct": 2 / 3,
        "team_votes": 3,
        "score_values": [50, 33],
    }
    assert [{"team_id": "777", "combined_score": 83, "questions": {"q1": score}}] == leaderboard(admin)


def test_the_combined_score_adds_the_questions_in_state_results(admin, viewer):
    for question in ("q1", "q2", "q3"):
        create_question(admin, question)
        vote(viewer(), question=question)
    vote(viewer("2"), "o2", "q2")

    seen = [scores(admin)]
    for question in ("q1", "q2"):
        set_state(admin, "state-results", question)
        seen.append(scores(admin))
    set_state(admin, "state-locked", "q1")

    assert [[("777", 0)], [("777", 50)], [("777", 75)], [("777", 25)]] == [*seen, scores(admin)]
    assert ["q2"] == list(leaderboard(admin)[0]["questions"])


def test_votes_for_removed_options_and_questions_do_not_count(admin, viewer):
    create_question(admin)
    create_question(admin, "q2")
    for user, option in (("1", "o1"), ("2", "o2")):
        vote(viewer(user), option)
        vote(viewer(user), option, "q2")
    admin.request("DELETE", "curated_poll_edit_option", json={"question": "q1", "option": "o2"})
    admin.request("DELETE", "curated_poll_edit", json={"id": "q2"})

    set_state(admin, "state-results")

    (row,) = leaderboard(admin)
    assert (50, ["q1"]) == (row["combined_score"], list(row["questions"]))
    assert (1, 0.5) == (row["questions"]["q1"]["team_votes"], row["questions"]["q1"]["team_participation"])
