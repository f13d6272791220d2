"""How teams stand, from the records of their voters. Pure.

A question in `state-results` is worth up to 100 points to a team: 50 if its broadcaster was right, and 50 times the
share of right ones among the team's votes, the broadcaster's included, rounded half up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from emulator.features.trivia.rules import Contest, Question, State
from emulator.features.trivia.voters import Voter

MOST_TEAMS: Final = 1_000
"""How many teams are listed."""
POINTS: Final = 50
"""The most that a team's broadcaster, and that its votes, are worth for one question."""


class QuestionScore(Struct):
    """How a team did on one question. Shares are from 0 to 1."""

    question_id: str
    broadcaster_correct: bool
    team_participation: float
    """The share of the team's members who voted."""
    team_participants: int
    """How many members voted."""
    percent_correct: float
    """The share of right ones among the team's votes, 0 where there are none."""
    team_votes: int
    """How many votes there are: one for each who voted."""
    score_values: list[int]
    """What the broadcaster and what the team's votes are worth, in this order."""


class TeamScore(Struct):
    """How a team stands."""

    team_id: str
    """Its channel."""
    combined_score: int
    """The sum of all `score_values`."""
    questions: dict[str, QuestionScore]
    """By question id; those in `state-results`."""


class _Team:
    def __init__(self) -> None:
        self.members = 0
        self.votes: Counter[str] = Counter()
        self.correct: Counter[str] = Counter()
        self.broadcaster_correct: set[str] = set()


class Standings:
    """Counts voters, one after the other, so that they need not be in memory together."""

    def __init__(self, contest: Contest) -> None:
        self._questions = [each for each in contest.values() if each.state is State.RESULTS]
        self._teams: defaultdict[str, _Team] = defaultdict(_Team)

    def add(self, voters: Iterable[Voter]) -> None:
        """Count some voters."""
        for voter in voters:
            team = self._teams[voter.team]
            team.members += 1
            for question in self._questions:
                vote = voter.vote(question)
                if vote is None or not question.has_option(vote):
                    continue
                team.votes[question.id] += 1
                if vote == question.winner:
                    team.correct[question.id] += 1
                    if voter.is_broadcaster:
                        team.broadcaster_correct.add(question.id)

    def best(self) -> list[TeamScore]:
        """At most 1,000 teams, highest score first; ties by team id, in code point order."""
        scores = (self._score(team_id, team) for team_id, team in self._teams.items())
        return sorted(scores, key=lambda each: (-each.combined_score, each.team_id))[:MOST_TEAMS]

    def _score(self, team_id: str, team: _Team) -> TeamScore:
        scores = {question.id: _question_score(question, team) for question in self._questions}
        return TeamScore(team_id, sum(sum(each.score_values) for each in scores.values()), scores)


def _question_score(question: Question, team: _Team) -> QuestionScore:
    votes, correct = team.votes[question.id], team.correct[question.id]
    is_right = question.id in team.broadcaster_correct
    return QuestionScore(
        question.id,
        is_right,
        team_participation=votes / team.members,
        team_participants=votes,
        percent_correct=correct / votes if votes else 0.0,
        team_votes=votes,
        score_values=[POINTS * is_right, (2 * POINTS * correct + votes) // (2 * votes) if votes else 0],
    )
