"""The leaderboard of teams. No I/O.

A team gets up to 100 points for a question in `state-results`: 50 if its broadcaster voted correctly, plus 50 times
the share of correct votes in the team, including the broadcaster's, rounded half up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from emulator.features.trivia.rules import Contest, Question, State, Voter

MAX_TEAMS: Final = 1_000
"""Teams on the leaderboard."""
POINTS: Final = 50
"""The points per question for the broadcaster's vote, and at most for the team's votes."""


class QuestionScore(Struct):
    """A team's score for one question. Shares are 0 to 1."""

    question_id: str
    broadcaster_correct: bool
    team_participation: float
    """The share of the team's members who voted."""
    team_participants: int
    """The number of members who voted."""
    percent_correct: float
    """The share of correct votes; 0 without votes."""
    team_votes: int
    """The number of votes, one per participant."""
    score_values: list[int]
    """The points for the broadcaster's vote and for the team's votes, in this order."""


class TeamScore(Struct):
    """A team's entry on the leaderboard."""

    team_id: str
    """The team's channel."""
    combined_score: int
    """The sum of all `score_values`."""
    questions: dict[str, QuestionScore]
    """The questions in `state-results` by id."""


class _Team:
    def __init__(self) -> None:
        self.members = 0
        self.votes: Counter[str] = Counter()
        self.correct: Counter[str] = Counter()
        self.broadcaster_correct: set[str] = set()


class Standings:
    """Counts voters in batches, so that they need not all be in memory."""

    def __init__(self, contest: Contest) -> None:
        self._questions = [each for each in contest.values() if each.state is State.RESULTS]
        self._teams: defaultdict[str, _Team] = defaultdict(_Team)

    def add(self, voters: Iterable[Voter]) -> None:
        for voter in voters:
            team = self._teams[voter.team]
            team.members += 1
            for question in self._questions:
                vote = voter.vote(question)
                is_correct = bool(vote) and vote == question.winner
                team.votes[question.id] += vote != ""
                team.correct[question.id] += is_correct
                if is_correct and voter.is_broadcaster:
                    team.broadcaster_correct.add(question.id)

    def best(self) -> list[TeamScore]:
        """Return the top 1,000 teams, highest score first; ties are in code point order of the team id."""
        scores = (self._score(team_id, team) for team_id, team in self._teams.items())
        return sorted(scores, key=lambda each: (-each.combined_score, each.team_id))[:MAX_TEAMS]

    def _score(self, team_id: str, team: _Team) -> TeamScore:
        scores = {question.id: _question_score(question, team) for question in self._questions}
        return TeamScore(team_id, sum(sum(each.score_values) for each in scores.values()), scores)


def _question_score(question: Question, team: _Team) -> QuestionScore:
    votes, correct = team.votes[question.id], team.correct[question.id]
    broadcaster_correct = question.id in team.broadcaster_correct
    return QuestionScore(
        question.id,
        broadcaster_correct,
        team_participation=votes / team.members,
        team_participants=votes,
        percent_correct=correct / votes if votes else 0.0,
        team_votes=votes,
        score_values=[POINTS * broadcaster_correct, (2 * POINTS * correct + votes) // (2 * votes) if votes else 0],
    )
