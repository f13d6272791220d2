"""Trivia questions, their states and views, the records of voters, and the team leaderboard. No I/O.

An extension's questions are one record, so edits are atomic. A voter's record holds both the team and the votes, so
that a first vote and its team are one write.

A team gets up to 100 points for a question in `state-results`: 50 if its broadcaster voted correctly, plus 50 times
the share of correct votes in the team, including the broadcaster's, rounded half up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.contract.limits import MAX_ID_LENGTH
from emulator.core.callers import EXTENSION_WRITERS, Caller, Role, required_channel
from emulator.core.errors import BadRequest, Facts, NotFound, refusal
from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.storage.kinds import VALUE, Stored, decode_check, decoded, wrong
from emulator.storage.records import DocumentRecord

RULE: Final = "gaps: Trivia"
_SMALLER: Final = "Remove some: `extcli trivia rm` or `extcli trivia rm-option`."


@refusal(NotFound, "Not Found", RULE, "There is no such question",
         "Create it first: `extcli trivia define {question}`; `extcli trivia list` shows what there is.")  # fmt: skip
def no_question(*, question: str) -> Facts:
    return Facts(f"there is no question {question}", f"question {question}", "a question of the extension")


@refusal(NotFound, "Not Found", RULE, "The question is not open, or does not exist",
         "Open it: `extcli trivia move {question} unlocked`; `extcli trivia list --as backend` shows all.")  # fmt: skip
def question_not_open(*, question: str) -> Facts:
    return Facts(f"no question {question} is open", f"question {question}", "a question that is not inactive")


@refusal(NotFound, "Not Found", RULE, "The question has no such option",
         "Name another option: `extcli trivia get {question}` lists them.")  # fmt: skip
def no_option(*, question: str, option: str) -> Facts:
    return Facts(f"the question {question} has no option {option}", f"option {option}", f"an option of {question}")


@refusal(BadRequest, "question is not unlocked", RULE, "The question takes no votes now",
         "Unlock it: `extcli trivia move {question} unlocked`.")  # fmt: skip
def not_unlocked(*, question: str, state: str, takes_votes: str) -> Facts:
    return Facts(f"{question} is in {state}; it takes votes in {takes_votes}", f"state {state}", f"state {takes_votes}")


@refusal(BadRequest, "Too many questions", rule=RULE, title="The contest is too large", next_step=_SMALLER)
def too_many_questions(*, limit: int) -> Facts:
    return Facts(f"the limit is {limit} questions; remove one first", "one question too many", f"at most {limit}")


@refusal(BadRequest, "Too many options", rule=RULE, title="The contest is too large", next_step=_SMALLER)
def too_many_options(*, limit: int) -> Facts:
    detail = f"the limit is {limit} options per question; remove one first"
    return Facts(detail, "one option too many", f"at most {limit} per question")


@refusal(BadRequest, "Contest too large", rule=RULE, title="The contest is too large", next_step=_SMALLER)
def contest_too_large(*, size: int, limit: int) -> Facts:
    detail = f"the questions have {size} bytes of JSON; the limit is {limit}"
    return Facts(detail, f"{size} bytes of JSON", f"at most {limit} bytes")


@refusal(BadRequest, "Option is the winner", RULE, "The option is the winner",
         "Change the state first: `extcli trivia move {question} locked`.")  # fmt: skip
def option_is_winner(*, question: str, option: str) -> Facts:
    detail = f"option: {option} is the winner; change the state first"
    return Facts(detail, f"option {option}, the winner of {question}", "another option")


@refusal(BadRequest, "Invalid transition", RULE, "There is no such state",
         "Move the question to one of the states: `extcli trivia move`.")  # fmt: skip
def no_state(*, state: str, states: Iterable[str]) -> Facts:
    known = ", ".join(states)
    return Facts(f"transition: {state!r} is not one of {known}", f"state {state!r}", f"one of {known}")


@refusal(BadRequest, "Invalid winner", RULE, "The state needs a winner",
         "Name the option: `extcli trivia move {question} results --winner OPTION`.")  # fmt: skip
def no_winner(*, question: str, state: str) -> Facts:
    return Facts(
        f"winner: {state} needs the id of the winning option", "no winner", f"the winning option of {question}"
    )


CONTEST: Final = "trivia"
"""The kind of the record with an extension's questions."""
MAX_BYTES: Final = 512 * 1024
"""The limit of an extension's questions as compact JSON. It is small because every vote reads them all."""


class State(StrEnum):
    """The state of a question: who sees it, and whether it takes votes."""

    INACTIVE = "state-inactive"
    """Visible to admin and backend only."""
    UNLOCKED = "state-unlocked"
    """Visible to all, and open for votes."""
    LOCKED = "state-locked"
    """Visible to all, and closed for votes."""
    RESULTS = "state-results"
    """Visible to all with its winner, and closed for votes."""


class Option(Struct, frozen=True):
    """An option to choose."""

    id: str
    name: str = ""
    short_name: str = ""
    description: str = ""
    image: str | UnsetType = UNSET
    order: int | float | UnsetType = UNSET
    """Options and questions are sorted by `order`, 0 if absent, then by age."""


class QuestionBody(Option, frozen=True):
    """A question as a client sends it. It has the same members as an option."""


class Question(QuestionBody, frozen=True, kw_only=True):
    """A stored question."""

    serial: str
    """Unique per question, so that votes for a removed question do not count for a later one with its id."""
    state: State = State.INACTIVE
    winner: str = ""
    """An option id in `state-results`; empty in all other states."""
    options: tuple[Option, ...] = ()

    def has_option(self, option_id: str) -> bool:
        return any(each.id == option_id for each in self.options)


Contest = dict[str, Question]
"""The questions of an extension by id, oldest first."""


class Results(Struct):
    """The caller's vote and the winner; each is absent if unknown."""

    you: str | UnsetType = UNSET
    """The id of the option that the caller voted for."""
    winner: str | UnsetType = UNSET


class QuestionView(QuestionBody, frozen=True, kw_only=True):
    """A question as a client reads it."""

    state: State
    options: list[Option]
    results: Results


def contest_key(client_id: str) -> Key:
    return Key(CONTEST, client_id, "")


def decoded_contest(text: bytes | None) -> Contest:
    """Decode an extension's stored questions; `None` means no questions."""
    return {} if text is None else msgspec.json.decode(text, type=Contest)


def encoded_contest(contest: Contest) -> bytes:
    """Encode an extension's questions; raises `BadRequest` if they are over 512 KiB."""
    text = json_codec.encode(contest)
    if len(text) > MAX_BYTES:
        raise contest_too_large(size=len(text), limit=MAX_BYTES)
    return text


def question_of(contest: Contest, question_id: str, *, sees_inactive: bool) -> Question:
    """Return the question with this id; raises `NotFound` if there is none or the caller may not see it."""
    question = contest.get(question_id)
    if question is None or (question.state is State.INACTIVE and not sees_inactive):
        shown = question_id[:MAX_ID_LENGTH]
        raise no_question(question=shown) if sees_inactive else question_not_open(question=shown)
    return question


def check_option(question: Question, option_id: str) -> None:
    """Raise `NotFound` if the question has no option with this id."""
    if not question.has_option(option_id):
        raise no_option(question=question.id, option=option_id[:MAX_ID_LENGTH])


def view_of(question: Question, vote: str | None) -> QuestionView:
    """Return a question as a user who voted for `vote` sees it. A vote for a removed option is left out."""
    body = {name: getattr(question, name) for name in QuestionBody.__struct_fields__}
    results = Results(
        you=vote if vote is not None and question.has_option(vote) else UNSET, winner=question.winner or UNSET
    )
    return QuestionView(**body, state=question.state, options=sorted(question.options, key=sort_order), results=results)


def sort_order(option: Option) -> float:
    return 0 if option.order is UNSET else option.order


def _check_contest(record: DocumentRecord) -> None:
    contest = decoded(record.value, Contest, VALUE)
    encoded_contest(contest)
    for id, question in contest.items():
        if question.id != id:
            where, found = f"{VALUE}.{id[:MAX_ID_LENGTH]}", question.id[:MAX_ID_LENGTH]
            raise wrong(where, f"id: {found!r} is not the same")


VOTER: Final = "trivia_voter"
"""The kind of a voter's record."""


class Voter(Struct, frozen=True):
    """One user of one extension."""

    team: str = ""
    """The channel that the votes score for; empty if not set yet."""
    is_broadcaster: bool = False
    """Whether the voter owns that channel."""
    votes: dict[str, str] = {}
    """Option ids by the serial of the question."""

    def vote(self, question: Question) -> str | None:
        """Return the id of the option voted for, which may have been removed since; `None` without a vote."""
        return self.votes.get(question.serial)


def voter_key(caller: Caller) -> Key:
    return voters_key(caller.client_id)._replace(user=caller.opaque_id)


def voters_key(client_id: str) -> Key:
    """Return the key of an extension's voters, without the part `user`, which identifies one voter."""
    return Key(VOTER, client_id, "")


def decoded_voter(text: bytes | None) -> Voter:
    """Decode a voter's record; `None` means a voter without a team and votes."""
    return Voter() if text is None else msgspec.json.decode(text, type=Voter)


def with_team(voter: Voter, caller: Caller, channel: str | None) -> Voter:
    """Return the voter with a team: the earlier team, or `channel` for a voter without one and for any broadcaster.

    Raises `BadRequest`.
    """
    if caller.role is Role.BROADCASTER and channel:
        return msgspec.structs.replace(voter, team=channel, is_broadcaster=True)
    if voter.team:
        return voter
    return msgspec.structs.replace(voter, team=required_channel(channel, "a team"))


def with_vote(voter: Voter, caller: Caller, contest: Contest, question_id: str, option_id: str) -> Voter:
    """Return the voter with this vote, and without votes for removed questions. Raises `NotFound` and `BadRequest`."""
    question = question_of(contest, question_id, sees_inactive=sees_inactive(caller))
    if question.state is not State.UNLOCKED:
        raise not_unlocked(question=question_id, state=question.state, takes_votes=State.UNLOCKED)
    check_option(question, option_id)
    serials = {each.serial for each in contest.values()}
    votes = {serial: option for serial, option in voter.votes.items() if serial in serials}
    return msgspec.structs.replace(voter, votes={**votes, question.serial: option_id})


def sees_inactive(caller: Caller) -> bool:
    """Whether the caller may see inactive questions: admin and backend may."""
    return caller.role in EXTENSION_WRITERS


STORED: Final = (
    Stored(DocumentRecord, CONTEST, _check_contest),
    Stored(DocumentRecord, VOTER, decode_check(Voter)),
)


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
                if vote is None or not question.has_option(vote):
                    continue
                team.votes[question.id] += 1
                if vote == question.winner:
                    team.correct[question.id] += 1
                    if voter.is_broadcaster:
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
