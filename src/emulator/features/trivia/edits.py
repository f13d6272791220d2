"""Edits of an extension's questions. Pure: each edit returns the changed questions, or raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET

from emulator.contract.limits import MAX_ID_LENGTH
from emulator.features.trivia.refusals import (
    no_state,
    no_winner,
    option_is_winner,
    too_many_options,
    too_many_questions,
)
from emulator.features.trivia.rules import (
    Contest,
    Option,
    Question,
    QuestionBody,
    State,
    check_option,
    question_of,
    sort_order,
)
from emulator.wire.refusals import checked_text, invalid_member, too_long

MAX_QUESTIONS: Final = 64
MAX_OPTIONS: Final = 64
_MAX_LENGTHS: Final = {"name": 256, "short_name": 64, "description": 1024, "image": 1024}
"""The limit of each text, in characters."""
_MAX_ORDER: Final = 1_000_000_000


def with_question(contest: Contest, body: QuestionBody, *, serial: str) -> Contest:
    """Add an inactive question with this `serial`, or replace the texts of a known one. Raises `BadRequest`."""
    _check(body, "")
    before = contest.get(body.id)
    if before is None:
        if len(contest) >= MAX_QUESTIONS:
            raise too_many_questions(limit=MAX_QUESTIONS)
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
    """Remove a question; raises `NotFound` if there is none."""
    removed = question_of(contest, question_id, sees_inactive=True)
    return {each: question for each, question in contest.items() if question is not removed}


def with_option(contest: Contest, question_id: str, option: Option) -> Contest:
    """Add an option, or replace the option with its id. Raises `NotFound` and `BadRequest`."""
    _check(option, "option.")

    def added(question: Question) -> Question:
        if question.has_option(option.id):
            options = tuple(option if each.id == option.id else each for each in question.options)
        elif len(question.options) < MAX_OPTIONS:
            options = (*question.options, option)
        else:
            raise too_many_options(limit=MAX_OPTIONS)
        return msgspec.structs.replace(question, options=options)

    return _change_question(contest, question_id, added)


def without_option(contest: Contest, question_id: str, option_id: str) -> Contest:
    """Remove an option; raises `NotFound` if there is none, `BadRequest` if it is the current winner."""

    def removed(question: Question) -> Question:
        check_option(question, option_id)
        if question.winner == option_id:
            raise option_is_winner(question=question_id, option=option_id)
        return msgspec.structs.replace(question, options=tuple(x for x in question.options if x.id != option_id))

    return _change_question(contest, question_id, removed)


def with_state(contest: Contest, question_id: str, transition: str, winner: str) -> Contest:
    """Move a question to any state; only `state-results` has a `winner`. Raises `BadRequest` and `NotFound`."""
    if transition not in list(State):
        raise no_state(state=transition[:40], states=State)
    state = State(transition)

    def moved(question: Question) -> Question:
        if state is not State.RESULTS:
            return msgspec.structs.replace(question, state=state, winner="")
        if not winner:
            raise no_winner(question=question_id, state=state)
        check_option(question, winner)
        return msgspec.structs.replace(question, state=state, winner=winner)

    return _change_question(contest, question_id, moved)


def _change_question(contest: Contest, question_id: str, change: Callable[[Question], Question]) -> Contest:
    return {**contest, question_id: change(question_of(contest, question_id, sees_inactive=True))}


def _check(body: Option, where: str) -> None:
    """Raise `BadRequest` naming the first member over its limit, prefixed with `where`."""
    checked_text(body.id, MAX_ID_LENGTH, reason="Invalid body", name=f"{where}id")
    for name, longest in _MAX_LENGTHS.items():
        text = getattr(body, name)
        if text is not UNSET and len(text) > longest:
            raise too_long(f"{where}{name}", size=len(text), unit="characters", limit=longest)
    if not -_MAX_ORDER <= sort_order(body) <= _MAX_ORDER:
        raise invalid_member(f"{where}order", sort_order(body), f"within -{_MAX_ORDER} to {_MAX_ORDER}")
