"""The trivia service: questions and their edits, votes, teams and the leaderboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from emulator.core.callers import ANYONE, EXTENSION_WRITERS, Caller
from emulator.core.changes import Change, Changes
from emulator.core.clock import Clock
from emulator.core.environment import Environment
from emulator.core.ids import token_id as new_id
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.observability.facts import CHANGED, READ, READ_ALL, notice
from emulator.core.wire import json_codec
from emulator.features.kinds import Kind, Measured, Subject
from emulator.features.trivia import rules
from emulator.features.trivia.rules import CONTEST, STORED, Contest, Option, QuestionBody, QuestionView, State, Voter
from emulator.http.endpoint import CHANNEL, Call, Nothing, Parameter, endpoint, id_of
from emulator.storage.shapes import Documents, Edit, Texts, document_pages

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

    leaderboard: list[rules.TeamScore]


class Team(Struct):
    """The caller's team, which is a channel; `id` is empty without a team."""

    id: str


@dataclass(eq=False, repr=False)
class Trivia:
    """Questions, votes and teams of all extensions.

    Records have the lifetime of state stores: questions from the last edit, voters from the last vote or joining.
    """

    _documents: Documents
    _clock: Clock
    _environment: Environment
    _changes: Changes

    @endpoint("POST", "/v1/e/curated_poll_edit", roles=EXTENSION_WRITERS, body=QuestionBody, answer=QuestionView)
    async def edit_question(self, call: Call) -> QuestionView:
        """Add a trivia question, or replace the texts of the question with this id.

        A new question is inactive. An edit keeps options, state and votes. The limit is 64 questions.
        """
        body, serial = call.body(QuestionBody), new_id()
        return await self._edit_and_view(call.caller, body.id, lambda contest: contest.put_question(body, serial))

    @endpoint("DELETE", "/v1/e/curated_poll_edit", roles=EXTENSION_WRITERS, body=QuestionIdBody)
    async def remove_question(self, call: Call) -> Nothing:
        """Remove a trivia question and its votes; 404 if there is none."""
        question_id = call.body(QuestionIdBody).id
        await self._edit_contest(call.caller, lambda contest: contest.remove_question(question_id))
        audit("questions deleted", call.caller, question=question_id)
        return Nothing()

    @endpoint("POST", "/v1/e/curated_poll_edit_option", roles=EXTENSION_WRITERS, body=OptionBody, answer=QuestionView)
    async def edit_option(self, call: Call) -> QuestionView:
        """Add an option to a trivia question, or replace the option with its id. The limit is 64 options."""
        body = call.body(OptionBody)
        return await self._edit_and_view(call.caller, body.id, lambda contest: contest.put_option(body.id, body.option))

    @endpoint(
        "DELETE", "/v1/e/curated_poll_edit_option", roles=EXTENSION_WRITERS, body=OptionIdBody, answer=QuestionView
    )
    async def remove_option(self, call: Call) -> QuestionView:
        """Remove an option of a trivia question; 404 if there is none, 400 if it is the current winner."""
        caller, body = call.caller, call.body(OptionIdBody)
        view = await self._edit_and_view(
            caller, body.question, lambda contest: contest.remove_option(body.question, body.option)
        )
        audit("options deleted", caller, question=body.question, option=body.option)
        return view

    @endpoint(
        "POST",
        "/v1/e/curated_poll_state",
        roles=EXTENSION_WRITERS,
        body=TransitionBody,
        answer=StateAnswer,
        query=(id_of("question"),),
    )
    async def set_question_state(self, call: Call) -> StateAnswer:
        """Move a trivia question from any state to any other; `state-results` needs the `winner`."""
        body, id = call.body(TransitionBody), call.id
        contest = await self._edit_contest(call.caller, lambda contest: contest.move(id, body.transition, body.winner))
        return StateAnswer(contest[id].state)

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        """Count the questions of an extension."""
        contest, _ = await self._read_contest_and_voter(caller)
        return Measured({"": len(contest)})

    @endpoint(
        "GET",
        "/v1/e/curated_poll",
        roles=ANYONE,
        answer=JsonObject,
        query=(Parameter("id", "The question id; all questions when absent or empty."),),
    )
    async def read_questions(self, call: Call) -> Questions | QuestionView:
        """Read the trivia questions with the caller's votes and, in `state-results`, the winners.

        The response is `{"questions": […]}`; with `id` it is one question. Only admin and backend see inactive
        questions.
        """
        contest, voter = await self._read_contest_and_voter(call.caller)
        sees_all = call.caller.role in EXTENSION_WRITERS
        if question_id := call.text("id"):
            return contest.question(question_id, sees_inactive=sees_all).view_for(voter)
        seen = (each for each in contest.values() if sees_all or each.state is not State.INACTIVE)
        return Questions([each.view_for(voter) for each in sorted(seen, key=rules.sort_order)])

    @endpoint("POST", "/v1/e/curated_poll", roles=ANYONE, body=QuestionVoteBody, query=(CHANNEL,))
    async def vote_on_question(self, call: Call) -> Nothing:
        """Vote on an unlocked trivia question, or replace an earlier vote. The first vote sets the voter's team."""
        body, caller, channel = call.body(QuestionVoteBody), call.caller, call.channel
        contest_record, voter_record = Contest.key(caller.client_id), Voter.key(caller)

        def change(found: Texts) -> Texts:
            voter = Voter.decoded(found.get(voter_record))
            voter.cast(caller, Contest.decoded(found.get(contest_record)), body.question_id, body.vote)
            voter.join(caller, channel)
            return {voter_record: json_codec.encode(voter)}

        await self._update_records([contest_record, voter_record], change)
        return Nothing()

    @endpoint("GET", "/v1/e/curated_poll_leaderboard", roles=EXTENSION_WRITERS, answer=Leaderboard)
    async def read_leaderboard(self, call: Call) -> Leaderboard:
        """Read the top 1,000 teams.

        Each question in `state-results` scores 50 points if the broadcaster voted correctly, plus 50 times the share of
        correct votes in the team.
        """
        standings = rules.Standings((await self._read_contest_and_voter(call.caller))[0])
        key = Voter.key(call.caller)._replace(user="")
        notice(READ_ALL, key)
        async for page in document_pages(self._documents, key, now=self._clock.now()):
            standings.add(map(Voter.decoded, page.values()))
        return Leaderboard(standings.top_teams())

    @endpoint("POST", "/v1/e/team_membership", roles=ANYONE, answer=Team, query=(CHANNEL,))
    async def join_team(self, call: Call) -> Team:
        """Join the channel's team, unless the caller already has a team, and return the caller's team."""
        caller, channel, key = call.caller, call.channel, Voter.key(call.caller)

        def change(found: Texts) -> Texts:
            voter = Voter.decoded(found.get(key))
            voter.join(caller, channel)
            return {key: json_codec.encode(voter)}

        written = await self._update_records([key], change)
        return Team(Voter.decoded(written[key]).team)

    @endpoint("GET", "/v1/e/team_membership", roles=ANYONE, answer=Team)
    async def read_team(self, call: Call) -> Team:
        """Read the caller's team; its id is empty before the first vote or joining a team."""
        _, voter = await self._read_contest_and_voter(call.caller)
        return Team(voter.team)

    async def _read_contest_and_voter(self, caller: Caller) -> tuple[Contest, Voter]:
        """Return the questions and the caller's record, read at one instant."""
        contest_record, voter_record = Contest.key(caller.client_id), Voter.key(caller)
        notice(READ, contest_record, voter_record)
        found = await self._documents.read([contest_record, voter_record], now=self._clock.now())
        return Contest.decoded(found.get(contest_record)), Voter.decoded(found.get(voter_record))

    async def _edit_and_view(self, caller: Caller, question_id: str, edit: Callable[[Contest], None]) -> QuestionView:
        """Change a question, and return it with the caller's vote."""
        contest = await self._edit_contest(caller, edit)
        _, voter = await self._read_contest_and_voter(caller)
        return contest[question_id].view_for(voter)

    async def _edit_contest(self, caller: Caller, edit: Callable[[Contest], None]) -> Contest:
        key = Contest.key(caller.client_id)

        def change(found: Texts) -> Texts:
            contest = Contest.decoded(found.get(key))
            edit(contest)
            return {key: contest.encoded()}

        written = await self._update_records([key], change)
        await self._changes.committed(Change(key, "edited", caller.opaque_id))
        return Contest.decoded(written[key])

    async def _update_records(self, keys: list[Key], change: Edit) -> dict[Key, bytes]:
        now = self._clock.now()
        notice(READ, *keys)
        expires_at = self._environment.expires_at(now, self._environment.state_lifetime)
        written = await self._documents.update(keys, change, now=now, expires_at=expires_at)
        notice(CHANGED, *written)
        return written


TRIVIA = Kind(
    "trivia",
    "the extensions with trivia questions, and the size of these questions",
    (CONTEST,),
    None,
    STORED,
    waits_for=Subject("trivia", CONTEST, frozenset({"count"}), "*", shared="", is_named=False),
)
