"""Teams of trivia, and the leaderboard's arithmetic (rest-clients 2.12)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.connection import Connection
from support.service import Client, LiveServer
from support.trivia import create_question, error_of, results, set_state, team, vote


def leaderboard(admin: Client) -> list[dict[str, Any]]:
    return list(admin.get("curated_poll_leaderboard").raise_for_status().json()["leaderboard"])


def scores(admin: Client) -> list[tuple[str, int]]:
    return [(each["team_id"], each["combined_score"]) for each in leaderboard(admin)]


def owner(live: LiveServer, channel: str) -> Client:
    return live.client("broadcaster", user=channel, channel=channel)


def test_whoever_neither_voted_nor_joined_has_no_team(viewer):
    assert {"id": ""} == viewer().get("team_membership").json()


def test_the_first_vote_fixes_the_team_to_the_channel_for_good(admin, viewer):
    create_question(admin)
    create_question(admin, "q2")

    vote(viewer(channel="777"))
    vote(viewer(channel="888"))
    vote(viewer(channel="888"), question="q2")
    joined = viewer(channel="888").post("team_membership").json()

    assert ({"id": "777"}, "777", "777") == (joined, team(viewer()), team(viewer(channel="888")))


def test_joining_fixes_the_team_before_a_vote(admin, viewer):
    create_question(admin, state="state-results")

    joined = viewer(channel="888").post("team_membership").json()
    vote(viewer(channel="777"))

    assert ({"id": "888"}, "888") == (joined, team(viewer()))


@pytest.mark.parametrize(
    ("state", "option"), [("state-locked", "o1"), ("state-inactive", "o1"), ("state-unlocked", "o9")]
)
def test_a_vote_that_is_refused_fixes_no_team(admin, viewer, state: str, option: str):
    create_question(admin, state=state)

    assert vote(viewer(), option) in (400, 404)
    assert "" == team(viewer())


async def test_of_first_votes_from_two_channels_at_once_one_decides(live, admin, viewer):
    create_question(admin)
    create_question(admin, "q2")

    async def cast(user: int, channel: str, question: str) -> None:
        async with Connection(live, viewer(str(user), channel=channel)) as voter:
            await voter.post("curated_poll", {"question_id": question, "vote": "o1"})

    await asyncio.gather(*(cast(user, *way) for user in range(50) for way in (("777", "q1"), ("888", "q2"))))
    for question in ("q1", "q2"):
        set_state(admin, "state-results", question)

    rows = leaderboard(admin)
    assert 50 == sum(row["questions"]["q1"]["team_votes"] for row in rows)
    assert all(row["questions"]["q1"]["team_votes"] == row["questions"]["q2"]["team_votes"] for row in rows)


async def test_a_vote_beside_a_change_of_state_is_counted_or_refused(live, admin, viewer):
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


def test_a_broadcaster_votes_for_their_own_channel_whatever_they_watched_before(live: LiveServer, admin):
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


def test_without_a_channel_there_is_no_team_and_so_no_vote(admin, backend):
    create_question(admin)

    answers = [backend.post("team_membership"), backend.post("curated_poll", json={"question_id": "q1", "vote": "o1"})]

    assert [(400, "a team is a channel: use a token with a channel_id, or ?channel_id=")] * 2 == [
        error_of(each) for each in answers
    ]
    assert {} == results(backend)
    assert {"id": "888"} == backend.post("team_membership?channel_id=888").json()
    assert 200 == vote(backend)


def test_an_entry_of_the_leaderboard_says_how_the_score_came_about(live: LiveServer, admin, viewer):
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


@pytest.mark.parametrize(
    ("right", "wrong", "worth"),
    [(0, 0, 0), (0, 3, 0), (1, 0, 50), (1, 1, 25), (1, 2, 17), (1, 3, 13), (3, 1, 38), (1, 7, 6), (3, 0, 50)],
)
def test_the_teams_votes_are_worth_50_times_the_share_of_right_ones_rounded_half_up(
    admin, viewer, right: int, wrong: int, worth: int
):
    create_question(admin)
    viewer("watcher").post("team_membership")
    for user in range(right + wrong):
        vote(viewer(str(user)), "o1" if user < right else "o2")

    set_state(admin, "state-results")

    assert [("777", worth)] == scores(admin)


def test_a_wrong_broadcaster_adds_nothing_and_counts_among_the_teams_votes(live: LiveServer, admin, viewer):
    create_question(admin)
    vote(owner(live, "777"), "o2")
    vote(viewer("1"))

    set_state(admin, "state-results")

    assert [("777", 25)] == scores(admin)


def test_teams_are_in_order_of_their_score_then_of_their_id(live: LiveServer, admin, viewer):
    create_question(admin)
    for channel, user, option in (("9", "1", "o1"), ("10", "2", "o1"), ("7", "3", "o2"), ("8", "4", "o1")):
        vote(viewer(user, channel=channel), option)
    vote(owner(live, "8"))

    set_state(admin, "state-results")

    assert [("8", 100), ("10", 50), ("9", 50), ("7", 0)] == scores(admin)


def test_only_questions_in_state_results_score_and_their_sum_is_the_combined_score(admin, viewer):
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


def test_another_winner_changes_the_scores(admin, viewer):
    create_question(admin)
    vote(viewer(), "o2")
    set_state(admin, "state-results", winner="o1")
    before = scores(admin)

    set_state(admin, "state-results", winner="o2")

    assert ([("777", 0)], [("777", 50)]) == (before, scores(admin))


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


async def test_a_leaderboard_of_more_voters_than_one_page_counts_each_once(live, admin, viewer):
    create_question(admin)

    async def cast(lane: int) -> None:
        for user in range(lane, 1_201, 30):
            async with Connection(live, viewer(f"u{user}")) as voter:
                await voter.post("curated_poll", {"question_id": "q1", "vote": "o1"})

    await asyncio.gather(*map(cast, range(30)))
    set_state(admin, "state-results")

    assert 1_201 == leaderboard(admin)[0]["questions"]["q1"]["team_votes"]
