"""Trivia over REST, under the names of the published SDK: `curated_poll…` and `team_membership`."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from emulator.core.callers import ANYONE, EXTENSION_WRITERS
from emulator.features.trivia.rules import Option, QuestionBody, QuestionView, State, TeamScore
from emulator.features.trivia.service import Trivia
from emulator.http.endpoint import CHANNEL, Call, Nothing, Parameter, endpoint, id_of

JsonObject = dict[str, Any]
"""Stands in the OpenAPI document for a response of several possible shapes."""


class QuestionIdBody(Struct):
    """The question to remove."""

    id: str


class OptionBody(Struct):
    """An option to add or replace; `id` is the id of its question."""

    id: str
    option: Option


class OptionIdBody(Struct):
    """The option to remove, and its question, both by id."""

    question: str
    option: str


class TransitionBody(Struct):
    """The state to move to; `state-results` needs `winner`, the id of an option."""

    transition: str
    winner: str = ""


class QuestionVoteBody(Struct):
    """A vote: the ids of a question and of one of its options."""

    question_id: str
    vote: str


class Questions(Struct):
    """The questions that the caller may see, sorted by `order`."""

    questions: list[QuestionView]


class StateAnswer(Struct):
    """The new state of a question."""

    state: State


class Leaderboard(Struct):
    """Teams, highest score first."""

    leaderboard: list[TeamScore]


class Team(Struct):
    """The caller's team, which is a channel; `id` is empty without a team."""

    id: str


@endpoint("POST", "/v1/e/curated_poll_edit", roles=EXTENSION_WRITERS, body=QuestionBody, answer=QuestionView)
async def edit_question(trivia: Trivia, call: Call) -> QuestionView:
    """Add a trivia question, or replace the texts of the question with this id.

    A new question is inactive. An edit keeps options, state and votes. The limit is 64 questions.
    """
    return await trivia.edit_question(call.caller, call.body(QuestionBody))


@endpoint("DELETE", "/v1/e/curated_poll_edit", roles=EXTENSION_WRITERS, body=QuestionIdBody)
async def remove_question(trivia: Trivia, call: Call) -> Nothing:
    """Remove a trivia question and its votes; 404 if there is none."""
    await trivia.remove_question(call.caller, call.body(QuestionIdBody).id)
    return Nothing()


@endpoint("POST", "/v1/e/curated_poll_edit_option", roles=EXTENSION_WRITERS, body=OptionBody, answer=QuestionView)
async def edit_option(trivia: Trivia, call: Call) -> QuestionView:
    """Add an option to a trivia question, or replace the option with its id. The limit is 64 options."""
    body = call.body(OptionBody)
    return await trivia.edit_option(call.caller, body.id, body.option)


@endpoint("DELETE", "/v1/e/curated_poll_edit_option", roles=EXTENSION_WRITERS, body=OptionIdBody, answer=QuestionView)
async def remove_option(trivia: Trivia, call: Call) -> QuestionView:
    """Remove an option of a trivia question; 404 if there is none, 400 if it is the current winner."""
    body = call.body(OptionIdBody)
    return await trivia.remove_option(call.caller, body.question, body.option)


@endpoint(
    "POST",
    "/v1/e/curated_poll_state",
    roles=EXTENSION_WRITERS,
    body=TransitionBody,
    answer=StateAnswer,
    query=(id_of("question"),),
)
async def set_question_state(trivia: Trivia, call: Call) -> StateAnswer:
    """Move a trivia question from any state to any other; `state-results` needs the `winner`."""
    body = call.body(TransitionBody)
    return StateAnswer(await trivia.set_state(call.caller, call.id, body.transition, body.winner))


@endpoint(
    "GET",
    "/v1/e/curated_poll",
    roles=ANYONE,
    answer=JsonObject,
    query=(Parameter("id", "The question id; all questions when absent or empty."),),
)
async def read_questions(trivia: Trivia, call: Call) -> Questions | QuestionView:
    """Read the trivia questions with the caller's votes and, in `state-results`, the winners.

    The response is `{"questions": […]}`; with `id` it is one question. Only admin and backend see inactive questions.
    """
    if question_id := call.text("id"):
        return await trivia.question(call.caller, question_id)
    return Questions(await trivia.questions(call.caller))


@endpoint("POST", "/v1/e/curated_poll", roles=ANYONE, body=QuestionVoteBody, query=(CHANNEL,))
async def vote_on_question(trivia: Trivia, call: Call) -> Nothing:
    """Vote on an unlocked trivia question, or replace an earlier vote. The first vote sets the voter's team."""
    body = call.body(QuestionVoteBody)
    await trivia.vote(call.caller, call.channel, body.question_id, body.vote)
    return Nothing()


@endpoint("GET", "/v1/e/curated_poll_leaderboard", roles=EXTENSION_WRITERS, answer=Leaderboard)
async def read_leaderboard(trivia: Trivia, call: Call) -> Leaderboard:
    """Read the top 1,000 teams.

    Each question in `state-results` scores 50 points if the broadcaster voted correctly, plus 50 times the share of
    correct votes in the team.
    """
    return Leaderboard(await trivia.leaderboard(call.caller))


@endpoint("POST", "/v1/e/team_membership", roles=ANYONE, answer=Team, query=(CHANNEL,))
async def join_team(trivia: Trivia, call: Call) -> Team:
    """Join the channel's team unless the caller already has one, and return the caller's team."""
    return Team(await trivia.join(call.caller, call.channel))


@endpoint("GET", "/v1/e/team_membership", roles=ANYONE, answer=Team)
async def read_team(trivia: Trivia, call: Call) -> Team:
    """Read the caller's team; its id is empty before the first vote or joining a team."""
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
