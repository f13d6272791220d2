"""The scores of the trivia leaderboard (rest-clients 2.12)."""

from __future__ import annotations

import pytest

from emulator.features.trivia.rules import Contest, Option, Question, Standings, State, Voter

QUESTION = Question(
    id="q1", serial="s1", state=State.RESULTS, winner="right", options=[Option("right"), Option("wrong")]
)


def voter(vote: str, team: str = "777", *, is_broadcaster: bool = False) -> Voter:
    return Voter(team, is_broadcaster, {"s1": vote})


def scores(*voters: Voter) -> list[tuple[str, int]]:
    standings = Standings(Contest({"q1": QUESTION}))
    standings.add(voters)
    return [(each.team_id, each.combined_score) for each in standings.top_teams()]


@pytest.mark.parametrize(
    ("correct", "wrong", "points"),
    [(0, 0, 0), (0, 3, 0), (1, 0, 50), (1, 1, 25), (1, 2, 17), (1, 3, 13), (3, 1, 38), (1, 7, 6), (3, 0, 50)],
)
def test_the_share_of_correct_votes_scores_up_to_50_rounded_half_up(correct: int, wrong: int, points: int):
    voters = [voter("right")] * correct + [voter("wrong")] * wrong

    assert [("777", points)] == scores(Voter("777"), *voters)


@pytest.mark.parametrize(("vote", "points"), [("right", 100), ("wrong", 25)])
def test_a_broadcasters_vote_scores_0_or_50_and_counts_as_a_team_vote(vote: str, points: int):
    assert [("777", points)] == scores(voter(vote, is_broadcaster=True), voter("right"))


def test_teams_are_sorted_by_score_then_by_id():
    voters = [voter("right", "9"), voter("right", "10"), voter("wrong", "7"), voter("right", "8", is_broadcaster=True)]

    assert [("8", 100), ("10", 50), ("9", 50), ("7", 0)] == scores(*voters)
