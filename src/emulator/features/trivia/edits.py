"""How the questions of an extension may be changed. Pure.

Each change takes the questions and returns them as they then are, or raises and leaves them alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET

from emulator.errors import BadRequest
from emulator.features.trivia.rules import (
    LONGEST_ID,
    Contest,
    Option,
    Question,
    QuestionBody,
    State,
    check_option,
    place_of,
    question_of,
)

MOST_QUESTIONS: Final = 64
MOST_OPTIONS: Final = 64
_LONGEST: Final = {"name": 256, "short_name": 64, "description": 1024, "image": 1024}
"""Characters in each text."""
_FARTHEST: Final = 1_000_000_000


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
