"""What a question is, and who sees how much of it. Pure: no clock, no storage.

All questions of an extension are one record, so that each edit, and each vote beside it, is one atomic step.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.engines.base import Key
from emulator.errors import BadRequest, NotFound
from emulator.wire import json_codec

LARGEST: Final = 512 * 1024
"""Bytes of compact JSON that the questions of an extension may have together: each vote reads them."""
LONGEST_ID: Final = 64


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
    text = json_codec.encode(contest)
    if len(text) > LARGEST:
        raise BadRequest("Contest too large", f"the questions would have {len(text)} bytes of JSON, at most {LARGEST}")
    return text


def question_of(contest: Contest, question_id: str, *, sees_inactive: bool) -> Question:
    """A question; raises `NotFound` for one that there is not, or not for everybody."""
    question = contest.get(question_id)
    if question is None or (question.state is State.INACTIVE and not sees_inactive):
        raise NotFound("Not Found", f"there is no question {question_id[:LONGEST_ID]}")
    return question


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
