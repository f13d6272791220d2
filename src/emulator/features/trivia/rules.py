"""Trivia questions with their states, views and edits, the records of voters, and the leaderboard. No I/O.

An extension's questions are one record, so edits are atomic. A voter's record holds both the team and the votes, so
that a first vote and its team are one write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.contract.limits import MAX_ID_LENGTH
from emulator.core.callers import EXTENSION_WRITERS, Caller, Role, required_channel
from emulator.core.errors import BadRequest, Facts, NotFound, refusal
from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import checked_text, invalid_member, too_long
from emulator.storage.kinds import VALUE, Stored, decode_check, decoded, wrong
from emulator.storage.records import DocumentRecord

TRIVIA_RULE = "gaps: Trivia"
_REMOVE_SOME = "Remove some: `extcli trivia rm` or `extcli trivia rm-option`."


@refusal(NotFound, "Not Found", TRIVIA_RULE, "There is no such question",
         "Create it first: `extcli trivia define {question}`; `extcli trivia list` lists all questions.")  # fmt: skip
def no_question(*, question: str) -> Facts:
    return Facts(f"there is no question {question}", f"question {question}", "a question of the extension")


@refusal(NotFound, "Not Found", TRIVIA_RULE, "The question is not open, or does not exist",
         "Open it: `extcli trivia move {question} unlocked`; `extcli trivia list --as backend` lists all.")  # fmt: skip
def question_not_open(*, question: str) -> Facts:
    return Facts(f"there is no open question {question}", f"question {question}", "an open question")


@refusal(NotFound, "Not Found", TRIVIA_RULE, "The question has no such option",
         "Name another option: `extcli trivia get {question}` lists them.")  # fmt: skip
def no_option(*, question: str, option: str) -> Facts:
    return Facts(f"the question {question} has no option {option}", f"option {option}", f"an option of {question}")


@refusal(BadRequest, "question is not unlocked", TRIVIA_RULE, "The question takes no votes now",
         "Unlock it: `extcli trivia move {question} unlocked`.")  # fmt: skip
def not_unlocked(*, question: str, state: str) -> Facts:
    detail = f"the question {question} is {state}, and takes votes only when {State.UNLOCKED}"
    return Facts(detail, f"state {state}", f"state {State.UNLOCKED}")


@refusal(BadRequest, "Too many {what}", rule=TRIVIA_RULE, title="The contest is too large", next_step=_REMOVE_SOME)
def too_many(*, what: str, limit: int, per: str = "") -> Facts:
    detail = f"the limit is {limit} {what}{per}; remove one first"
    return Facts(detail, f"one {what.removesuffix('s')} too many", f"at most {limit} {what}{per}")


@refusal(BadRequest, "Contest too large", rule=TRIVIA_RULE, title="The contest is too large", next_step=_REMOVE_SOME)
def contest_too_large(*, size: int) -> Facts:
    detail = f"the questions have {size} bytes of JSON; the limit is {MAX_CONTEST_BYTES}"
    return Facts(detail, f"{size} bytes of JSON", f"at most {MAX_CONTEST_BYTES} bytes")


@refusal(BadRequest, "Option is the winner", TRIVIA_RULE, "The option is the winner",
         "Change the state first: `extcli trivia move {question} locked`.")  # fmt: skip
def option_is_winner(*, question: str, option: str) -> Facts:
    detail = f"option: {option} is the winner; change the state first"
    return Facts(detail, f"option {option}, the winner of {question}", "another option")


@refusal(BadRequest, "Invalid transition", TRIVIA_RULE, "There is no such state",
         "Name one of the states that the error lists: `extcli trivia move`.")  # fmt: skip
def no_state(*, state: str) -> Facts:
    known = ", ".join(State)
    return Facts(f"transition: {state!r} is not one of {known}", f"state {state!r}", f"one of {known}")


@refusal(BadRequest, "Invalid winner", TRIVIA_RULE, "The state needs a winner",
         "Name the option: `extcli trivia move {question} results --winner OPTION`.")  # fmt: skip
def no_winner(*, question: str, state: str) -> Facts:
    detail = f"winner: {state} needs the id of the winning option"
    return Facts(detail, "no winner", f"the winning option of {question}")


MAX_QUESTIONS = 64
MAX_OPTIONS = 64
_MAX_LENGTHS = {"name": 256, "short_name": 64, "description": 1024, "image": 1024}
"""The limit of each text, in characters."""
_MAX_ORDER = 1_000_000_000
CONTEST = "trivia"
"""The kind of the record with an extension's questions."""
MAX_CONTEST_BYTES = 512 * 1024
"""The limit of an extension's questions as compact JSON. It is small because every vote reads them all."""

MAX_TEAMS = 1_000
"""Teams on the leaderboard."""
POINTS_PER_PART = 50
"""The points per question for the broadcaster's vote, and at most for the team's votes."""


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


class Option(Struct):
    """An option to choose."""

    id: str
    name: str = ""
    short_name: str = ""
    description: str = ""
    image: str | UnsetType = UNSET
    order: int | float | UnsetType = UNSET
    """Options and questions are sorted by `order`, 0 if absent, then by age."""


class QuestionBody(Option):
    """A question as a client sends it. It has the same members as an option."""


class Question(QuestionBody, kw_only=True):
    """A stored question."""

    serial: str
    """Unique per question, so that votes for a removed question do not count for a later one with its id."""
    state: State = State.INACTIVE
    winner: str = ""
    """An option id in `state-results`; empty in all other states."""
    options: list[Option] = []

    def has_option(self, option_id: str) -> bool:
        return any(each.id == option_id for each in self.options)

    def check_option(self, option_id: str) -> None:
        """Raise `NotFound` if there is no option with this id."""
        if not self.has_option(option_id):
            raise no_option(question=self.id, option=option_id[:MAX_ID_LENGTH])

    def view_for(self, voter: Voter) -> QuestionView:
        """Return the question as this user sees it."""
        results = Results(voter.vote(self) or UNSET, self.winner or UNSET)
        texts = {name: getattr(self, name) for name in QuestionBody.__struct_fields__}
        options = sorted(self.options, key=sort_order)
        return QuestionView(**texts, state=self.state, options=options, results=results)


class Results(Struct):
    """The caller's vote and the winner; each is absent if unknown."""

    you: str | UnsetType = UNSET
    """The id of the option that the caller voted for."""
    winner: str | UnsetType = UNSET


class QuestionView(QuestionBody, kw_only=True):
    """A question as a client reads it."""

    state: State
    options: list[Option]
    results: Results


def sort_order(option: Option) -> float:
    return 0 if option.order is UNSET else option.order


class Contest(dict[str, Question]):
    """The questions of an extension by id, oldest first. Edits change it in place."""

    @staticmethod
    def key(client_id: str) -> Key:
        return Key(CONTEST, client_id, "")

    @classmethod
    def decoded(cls, text: bytes | None) -> Contest:
        """Decode the stored questions; `None` means no questions."""
        return cls(msgspec.json.decode(text, type=dict[str, Question])) if text else cls()

    def encoded(self) -> bytes:
        """Encode the questions; raises `BadRequest` if they are over 512 KiB."""
        text = json_codec.encode(self)
        if len(text) > MAX_CONTEST_BYTES:
            raise contest_too_large(size=len(text))
        return text

    def question(self, question_id: str, *, sees_inactive: bool = True) -> Question:
        """Return the question with this id; raises `NotFound` if there is none or the caller may not see it."""
        question = self.get(question_id)
        if question is None or (question.state is State.INACTIVE and not sees_inactive):
            shown = question_id[:MAX_ID_LENGTH]
            raise no_question(question=shown) if sees_inactive else question_not_open(question=shown)
        return question

    def put_question(self, body: QuestionBody, serial: str) -> None:
        """Add an inactive question with this `serial`, or replace the texts of a known one. Raises `BadRequest`."""
        _check_option_body(body, "")
        if body.id not in self:
            if len(self) >= MAX_QUESTIONS:
                raise too_many(what="questions", limit=MAX_QUESTIONS)
            self[body.id] = Question(id=body.id, serial=serial)
        for name, value in msgspec.structs.asdict(body).items():
            setattr(self[body.id], name, value)

    def remove_question(self, question_id: str) -> None:
        """Remove a question; raises `NotFound` if there is none."""
        del self[self.question(question_id).id]

    def put_option(self, question_id: str, option: Option) -> None:
        """Add an option, or replace the option with its id. Raises `NotFound` and `BadRequest`."""
        _check_option_body(option, "option.")
        question = self.question(question_id)
        if question.has_option(option.id):
            question.options = [option if each.id == option.id else each for each in question.options]
        elif len(question.options) < MAX_OPTIONS:
            question.options.append(option)
        else:
            raise too_many(what="options", limit=MAX_OPTIONS, per=" per question")

    def remove_option(self, question_id: str, option_id: str) -> None:
        """Remove an option; raises `NotFound` if there is none, `BadRequest` if it is the current winner."""
        question = self.question(question_id)
        question.check_option(option_id)
        if question.winner == option_id:
            raise option_is_winner(question=question_id, option=option_id)
        question.options = [each for each in question.options if each.id != option_id]

    def move(self, question_id: str, transition: str, winner: str) -> None:
        """Move a question to any state; only `state-results` has a `winner`. Raises `BadRequest` and `NotFound`."""
        if transition not in list(State):
            raise no_state(state=transition[:40])
        state, question = State(transition), self.question(question_id)
        if state is not State.RESULTS:
            winner = ""
        elif not winner:
            raise no_winner(question=question_id, state=state)
        else:
            question.check_option(winner)
        question.state, question.winner = state, winner


def _check_contest(record: DocumentRecord) -> None:
    contest = Contest(decoded(record.value, dict[str, Question], VALUE))
    contest.encoded()
    for id, question in contest.items():
        if question.id != id:
            where, found = f"{VALUE}.{id[:MAX_ID_LENGTH]}", question.id[:MAX_ID_LENGTH]
            raise wrong(where, f"id: {found!r} differs from the key of the question")


def _check_option_body(body: Option, where: str) -> None:
    """Raise `BadRequest` naming the first member over its limit, prefixed with `where`."""
    checked_text(body.id, MAX_ID_LENGTH, reason="Invalid body", name=f"{where}id")
    for name, longest in _MAX_LENGTHS.items():
        text = getattr(body, name)
        if text is not UNSET and len(text) > longest:
            raise too_long(f"{where}{name}", size=len(text), unit="characters", limit=longest)
    if not -_MAX_ORDER <= sort_order(body) <= _MAX_ORDER:
        raise invalid_member(f"{where}order", sort_order(body), f"within -{_MAX_ORDER} to {_MAX_ORDER}")


VOTER = "trivia_voter"
"""The kind of a voter's record."""


class Voter(Struct):
    """One user of one extension."""

    team: str = ""
    """The channel that the votes score for; empty if not set yet."""
    is_broadcaster: bool = False
    """Whether the voter owns that channel."""
    votes: dict[str, str] = {}
    """Option ids by the serial of the question."""

    def vote(self, question: Question) -> str:
        """Return the id of the option voted for; empty without a vote, and if the option has been removed since."""
        vote = self.votes.get(question.serial, "")
        return vote if question.has_option(vote) else ""

    @staticmethod
    def key(caller: Caller) -> Key:
        return Key(VOTER, caller.client_id, "", "", caller.opaque_id)

    @classmethod
    def decoded(cls, text: bytes | None) -> Voter:
        """Decode a voter's record; `None` means a voter without a team and votes."""
        return cls() if text is None else msgspec.json.decode(text, type=cls)

    def join(self, caller: Caller, channel: str | None) -> None:
        """Set the team to `channel`, unless there is one; for a broadcaster, in any case. Raises `BadRequest`."""
        if caller.role is Role.BROADCASTER and channel:
            self.team, self.is_broadcaster = channel, True
        elif not self.team:
            self.team = required_channel(channel, "a team")

    def cast(self, caller: Caller, contest: Contest, question_id: str, option_id: str) -> None:
        """Vote, and drop votes for removed questions. Raises `NotFound` and `BadRequest`."""
        question = contest.question(question_id, sees_inactive=caller.role in EXTENSION_WRITERS)
        if question.state is not State.UNLOCKED:
            raise not_unlocked(question=question_id, state=question.state)
        question.check_option(option_id)
        serials = {each.serial for each in contest.values()}
        self.votes = {serial: option for serial, option in self.votes.items() if serial in serials}
        self.votes[question.serial] = option_id


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


class Standings:
    """Counts voters in batches, so that they need not all be in memory.

    A team gets up to 100 points for a question in `state-results`: 50 if its broadcaster voted correctly, plus 50 times
    the share of correct votes in the team, including the broadcaster's, rounded half up.
    """

    def __init__(self, contest: Contest) -> None:
        self._questions = [each for each in contest.values() if each.state is State.RESULTS]
        self._members: Counter[str] = Counter()
        """By team. All others are by team and question."""
        self._votes: Counter[tuple[str, str]] = Counter()
        self._correct: Counter[tuple[str, str]] = Counter()
        self._broadcasters: set[tuple[str, str]] = set()
        """Where the broadcaster voted correctly."""

    def add(self, voters: Iterable[Voter]) -> None:
        for voter in voters:
            self._members[voter.team] += 1
            for question in self._questions:
                vote, place = voter.vote(question), (voter.team, question.id)
                is_correct = bool(vote) and vote == question.winner
                self._votes[place] += bool(vote)
                self._correct[place] += is_correct
                if is_correct and voter.is_broadcaster:
                    self._broadcasters.add(place)

    def top_teams(self) -> list[TeamScore]:
        """Return the top 1,000 teams, highest score first; ties are in code point order of the team id."""
        scores = map(self._team_score, self._members)
        return sorted(scores, key=lambda each: (-each.combined_score, each.team_id))[:MAX_TEAMS]

    def _team_score(self, team_id: str) -> TeamScore:
        scores = {question.id: self._question_score(team_id, question.id) for question in self._questions}
        return TeamScore(team_id, sum(sum(each.score_values) for each in scores.values()), scores)

    def _question_score(self, team_id: str, question_id: str) -> QuestionScore:
        place = team_id, question_id
        votes, correct, is_broadcasters = self._votes[place], self._correct[place], place in self._broadcasters
        of_team = (2 * POINTS_PER_PART * correct + votes) // (2 * votes) if votes else 0
        return QuestionScore(
            question_id,
            is_broadcasters,
            team_participation=votes / self._members[team_id],
            team_participants=votes,
            percent_correct=correct / votes if votes else 0.0,
            team_votes=votes,
            score_values=[POINTS_PER_PART * is_broadcasters, of_team],
        )


STORED = (Stored(DocumentRecord, CONTEST, _check_contest), Stored(DocumentRecord, VOTER, decode_check(Voter)))
