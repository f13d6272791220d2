"""Trivia over REST, under the names that the published SDK calls: `curated_poll…` and `team_membership`."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from emulator.callers import ANYONE, EXTENSION_WRITERS
from emulator.features.trivia.leaderboard import TeamScore
from emulator.features.trivia.rules import Option, QuestionBody, QuestionView, State
from emulator.features.trivia.service import Trivia
from emulator.web.call import Call
from emulator.web.endpoint import Nothing, Parameter, endpoint

_CHANNEL = Parameter("channel_id", "The channel, for roles admin and backend.")

JsonObject = dict[str, Any]
"""Stands for one of several objects, where the document cannot say which."""


class QuestionIdBody(Struct):
    """Which question."""

    id: str


class OptionBody(Struct):
    """An option, and the id of its question."""

    id: str
    option: Option


class OptionIdBody(Struct):
    """Which option of which question, both by id."""

    question: str
    option: str


class TransitionBody(Struct):
    """The state to move to; `winner`, an option's id, goes with `state-results`."""

    transition: str
    winner: str = ""


class QuestionVoteBody(Struct):
    """The id of an option, for a question."""

    question_id: str
    vote: str


class Questions(Struct):
    """All that the caller sees, by their `order`."""

    questions: list[QuestionView]


class StateAnswer(Struct):
    """The state a question is in now."""

    state: State


class Leaderboard(Struct):
    """Teams, highest score first."""

    leaderboard: list[TeamScore]


class Team(Struct):
    """A team is a channel; empty for none."""

    id: str


@endpoint("POST", "/v1/e/curated_poll_edit", roles=EXTENSION_WRITERS, body=QuestionBody, answer=QuestionView)
async def edit_question(trivia: Trivia, call: Call) -> QuestionView:
    """Add a trivia question, or give the one of this id other texts.

    A new one is inactive. Options, state and votes stay. At most 64 questions.
    """
    return await trivia.edit_question(call.caller, call.body(QuestionBody))


@endpoint("DELETE", "/v1/e/curated_poll_edit", roles=EXTENSION_WRITERS, body=QuestionIdBody)
async def remove_question(trivia: Trivia, call: Call) -> Nothing:
    """Remove a trivia question and its votes; 404 if there is none."""
    await trivia.remove_question(call.caller, call.body(QuestionIdBody).id)
    return Nothing()


@endpoint("POST", "/v1/e/curated_poll_edit_option", roles=EXTENSION_WRITERS, body=OptionBody, answer=QuestionView)
async def edit_option(trivia: Trivia, call: Call) -> QuestionView:
    """Add an option to a trivia question, or replace the one of its id. At most 64."""
    body = call.body(OptionBody)
    return await trivia.edit_option(call.caller, body.id, body.option)


@endpoint("DELETE", "/v1/e/curated_poll_edit_option", roles=EXTENSION_WRITERS, body=OptionIdBody, answer=QuestionView)
async def remove_option(trivia: Trivia, call: Call) -> QuestionView:
    """Remove an option of a trivia question, unless it is the winner shown; 404 if there is none."""
    body = call.body(OptionIdBody)
    return await trivia.remove_option(call.caller, body.question, body.option)


@endpoint(
    "POST",
    "/v1/e/curated_poll_state",
    roles=EXTENSION_WRITERS,
    body=TransitionBody,
    answer=StateAnswer,
    query=(Parameter("id", "The question id; `default` when absent or empty."),),
)
async def set_question_state(trivia: Trivia, call: Call) -> StateAnswer:
    """Move a trivia question to another state, from any to any; `state-results` needs the `winner`."""
    body = call.body(TransitionBody)
    return StateAnswer(await trivia.set_state(call.caller, call.id, body.transition, body.winner))


@endpoint(
    "GET",
    "/v1/e/curated_poll",
    roles=ANYONE,
    answer=JsonObject,
    query=(Parameter("id", "One question; all of them when absent or empty."),),
)
async def read_questions(trivia: Trivia, call: Call) -> Questions | QuestionView:
    """Read the trivia questions, or one, with the caller's vote and, in `state-results`, the winner.

    Answers `questions`, a list; with `id` one question, as `curated_poll_edit` does. Inactive ones are there for roles
    admin and backend only.
    """
    if question_id := call.text("id"):
        return await trivia.question(call.caller, question_id)
    return Questions(await trivia.questions(call.caller))


@endpoint("POST", "/v1/e/curated_poll", roles=ANYONE, body=QuestionVoteBody, query=(_CHANNEL,))
async def vote_on_question(trivia: Trivia, call: Call) -> Nothing:
    """Vote on an unlocked trivia question, or vote anew. The first vote fixes the voter's team."""
    body = call.body(QuestionVoteBody)
    await trivia.vote(call.caller, call.channel, body.question_id, body.vote)
    return Nothing()


@endpoint("GET", "/v1/e/curated_poll_leaderboard", roles=EXTENSION_WRITERS, answer=Leaderboard)
async def read_leaderboard(trivia: Trivia, call: Call) -> Leaderboard:
    """Read how the 1,000 best teams stand.

    For each question in `state-results`, 50 points if the broadcaster was right, and 50 times the share of right ones
    among the team's votes.
    """
    return Leaderboard(await trivia.leaderboard(call.caller))


@endpoint("POST", "/v1/e/team_membership", roles=ANYONE, answer=Team, query=(_CHANNEL,))
async def join_team(trivia: Trivia, call: Call) -> Team:
    """Join the team of the channel, unless the caller has one; answers the one they are in."""
    return Team(await trivia.join(call.caller, call.channel))


@endpoint("GET", "/v1/e/team_membership", roles=ANYONE, answer=Team)
async def read_team(trivia: Trivia, call: Call) -> Team:
    """Read the caller's team; its id is empty before the first vote or joining."""
    return Team(await trivia.team(call.caller))


endpoints: Final = (
    edit_question,
    remove_question,
    edit_option,
    remove_option,
    set_question_state,
    read_questions,
    vote_on_question,
    read_leaderboard,
    join_team,
    read_team,
)
