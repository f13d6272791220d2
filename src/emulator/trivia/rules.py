"""What a question and its options may be, and who sees how much of them. Pure: no clock, no storage.

All questions of an extension are one record, so that each edit, and each vote beside it, is one atomic step.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator import wire
from emulator.engines.base import Key
from emulator.errors import BadRequest, NotFound

MOST_QUESTIONS: Final = 64
MOST_OPTIONS: Final = 64
LARGEST: Final = 512 * 1024
"""Bytes of compact JSON that the questions of an extension may have together: each vote reads them."""
LONGEST_ID: Final = 64
_LONGEST: Final = {"name": 256, "short_name": 64, "description": 1024, "image": 1024}
"""Characters in each text."""
_FARTHEST: Final = 1_000_000_000


class State(StrEnum):
    """Who sees a question, and whether it takes votes."""

    INACTIVE = "state-inactive"
    """Only those who may edit it see it."""
    UNLOCKED = "state-unlocked"
    """Everybody sees it, and may vote."""
    LOCKED = "state-locked"
    """Everybody sees it; no votes."""
    RESULTS = "state-results"
    """The same, and which option won."""


class Option(Struct, frozen=True):
    """One of the answers to choose from."""

    id: str
    name: str = ""
    short_name: str = ""
    description: str = ""
    image: str | UnsetType = UNSET
    order: int | float | UnsetType = UNSET
    """Options, and questions, are listed by this, 0 where it is left out; then as they were added."""


class QuestionBody(Option, frozen=True):
    """A question as it is handed in: it has the members of an option."""


class Question(QuestionBody, frozen=True, kw_only=True):
    """A question as it is kept."""

    serial: str
    """Told from a question of the same id that was removed, whose votes are not this one's."""
    state: State = State.INACTIVE
    winner: str = ""
    """The id of an option; empty in all states but `state-results`."""
    options: tuple[Option, ...] = ()

    def has_option(self, option_id: str) -> bool:
        """Whether one of the options has this id."""
        return any(each.id == option_id for each in self.options)


Contest = dict[str, Question]
"""The questions of an extension by id, in the order in which they were added."""


class Results(Struct):
    """What was chosen, and what was right; each left out while there is nothing to say."""

    you: str | UnsetType = UNSET
    """The option that the caller voted for."""
    winner: str | UnsetType = UNSET


class QuestionView(QuestionBody, frozen=True, kw_only=True):
    """A question as it is shown."""

    state: State
    options: list[Option]
    results: Results


def contest_key(client_id: str) -> Key:
    """Where an extension's questions are kept."""
    return Key("trivia", client_id, "")


def contest_of(text: bytes | None) -> Contest:
    """The questions in a record, none if there is no record."""
    return {} if text is None else msgspec.json.decode(text, type=Contest)


def text_of(contest: Contest) -> bytes:
    """The record of these questions; raises `BadRequest` if it is too large."""
    text = wire.encode(contest)
    if len(text) > LARGEST:
        raise BadRequest("Contest too large", f"the questions would have {len(text)} bytes of JSON, at most {LARGEST}")
    return text


def question_of(contest: Contest, question_id: str, *, sees_inactive: bool) -> Question:
    """A question; raises `NotFound` for one that there is not, or not for everybody."""
    question = contest.get(question_id)
    if question is None or (question.state is State.INACTIVE and not sees_inactive):
        raise NotFound("Not Found", f"there is no question {question_id[:LONGEST_ID]}")
    return question


def with_question(contest: Contest, body: QuestionBody, *, serial: str) -> Contest:
    """Add the question, inactive; or give one of its id these texts, and leave its options, state and votes.

    Raises `BadRequest` for one that is over a limit.
    """
    _check(body, "")
    before = contest.get(body.id)
    if before is None:
        if len(contest) >= MOST_QUESTIONS:
            raise BadRequest("Too many questions", f"there are {len(contest)} questions, at most {MOST_QUESTIONS}")
        before = Question(id=body.id, serial=serial)
    question = Question(
        **msgspec.structs.asdict(body),
        serial=before.serial,
        state=before.state,
        winner=before.winner,
        options=before.options,
    )
    return {**contest, body.id: question}


def without_question(contest: Contest, question_id: str) -> Contest:
    """Take the question out; raises `NotFound` if there is none."""
    gone = question_of(contest, question_id, sees_inactive=True)
    return {each: question for each, question in contest.items() if question is not gone}


def with_option(contest: Contest, question_id: str, option: Option) -> Contest:
    """Add the option to a question, or replace the one of its id, in its place.

    Raises `NotFound` without the question and `BadRequest` for an option that is over a limit.
    """
    _check(option, "option.")

    def added(question: Question) -> Question:
        if question.has_option(option.id):
            options = tuple(option if each.id == option.id else each for each in question.options)
        elif len(question.options) < MOST_OPTIONS:
            options = (*question.options, option)
        else:
            raise BadRequest("Too many options", f"{question_id} has {MOST_OPTIONS} options, which is the most")
        return msgspec.structs.replace(question, options=options)

    return _changed(contest, question_id, added)


def without_option(contest: Contest, question_id: str, option_id: str) -> Contest:
    """Take an option out; raises `NotFound` if there is none, `BadRequest` if it is the winner that is shown."""

    def cut(question: Question) -> Question:
        check_option(question, option_id)
        if question.winner == option_id:
            raise BadRequest("Option is the winner", f"option: {option_id} has won; choose another state first")
        return msgspec.structs.replace(question, options=tuple(x for x in question.options if x.id != option_id))

    return _changed(contest, question_id, cut)


def with_state(contest: Contest, question_id: str, transition: str, winner: str) -> Contest:
    """Move a question from any state to any other. `winner` counts in `state-results` only, and is needed there.

    Raises `BadRequest` for a state that is none or lacks its winner, `NotFound` for an unknown question or option.
    """
    if transition not in list(State):
        raise BadRequest("Invalid transition", f"transition: {transition[:40]!r} is none of {', '.join(State)}")
    state = State(transition)

    def moved(question: Question) -> Question:
        if state is not State.RESULTS:
            return msgspec.structs.replace(question, state=state, winner="")
        if not winner:
            raise BadRequest("Invalid winner", f"winner: {state} needs the id of the option that won")
        check_option(question, winner)
        return msgspec.structs.replace(question, state=state, winner=winner)

    return _changed(contest, question_id, moved)


def check_option(question: Question, option_id: str) -> None:
    """Raise `NotFound` if the question has no such option."""
    if not question.has_option(option_id):
        raise NotFound("Not Found", f"the question {question.id} has no option {option_id[:LONGEST_ID]}")


def shown(question: Question, vote: str | None) -> QuestionView:
    """A question as one user sees it, who voted for `vote`. A vote for an option that is gone is not shown."""
    body = {name: getattr(question, name) for name in QuestionBody.__struct_fields__}
    results = Results(
        you=vote if vote is not None and question.has_option(vote) else UNSET, winner=question.winner or UNSET
    )
    return QuestionView(**body, state=question.state, options=sorted(question.options, key=place_of), results=results)


def place_of(one: Option) -> float:
    """By what questions and options are sorted."""
    return 0 if one.order is UNSET else one.order


def _changed(contest: Contest, question_id: str, change: Callable[[Question], Question]) -> Contest:
    return {**contest, question_id: change(question_of(contest, question_id, sees_inactive=True))}


def _check(body: Option, where: str) -> None:
    """Raise `BadRequest` naming the first member that is over its limit, as one of `where`."""
    if not body.id or len(body.id) > LONGEST_ID or not body.id.isprintable():
        raise BadRequest("Invalid body", f"{where}id: 1 to {LONGEST_ID} printable characters")
    for name, longest in _LONGEST.items():
        text = getattr(body, name)
        if text is not UNSET and len(text) > longest:
            raise BadRequest("Invalid body", f"{where}{name}: has {len(text)} characters, at most {longest}")
    if not -_FARTHEST <= place_of(body) <= _FARTHEST:
        raise BadRequest("Invalid body", f"{where}order: must be within -{_FARTHEST} to {_FARTHEST}")
