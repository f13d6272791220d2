"""The trivia service: questions and their edits, votes, teams and the leaderboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import msgspec
from msgspec import UNSET

from emulator.contract.limits import MAX_ID_LENGTH
from emulator.core.callers import Caller
from emulator.core.changes import Change, Commits
from emulator.core.clock import Clock
from emulator.core.config.environment import Environment
from emulator.core.ids import token_id as new_id
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.observability.facts import CHANGED, READ, READ_ALL, notice
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import checked_text, invalid_member, too_long
from emulator.features.trivia.rules import (
    CONTEST,
    STORED,
    Contest,
    Option,
    Question,
    QuestionBody,
    QuestionView,
    Standings,
    State,
    TeamScore,
    Voter,
    check_option,
    contest_key,
    decoded_contest,
    decoded_voter,
    encoded_contest,
    no_state,
    no_winner,
    option_is_winner,
    question_of,
    sees_inactive,
    sort_order,
    too_many_options,
    too_many_questions,
    view_of,
    voter_key,
    voters_key,
    with_team,
    with_vote,
)
from emulator.storage.kinds import Kind, Measured, Shape, Subject
from emulator.storage.shapes import Documents

MAX_QUESTIONS: Final = 64
MAX_OPTIONS: Final = 64
_MAX_LENGTHS: Final = {"name": 256, "short_name": 64, "description": 1024, "image": 1024}
"""The limit of each text, in characters."""
_MAX_ORDER: Final = 1_000_000_000
_PAGE: Final = 500


def with_question(contest: Contest, body: QuestionBody, *, serial: str) -> Contest:
    """Add an inactive question with this `serial`, or replace the texts of a known one. Raises `BadRequest`."""
    _check(body, "")
    before = contest.get(body.id)
    if before is None:
        if len(contest) >= MAX_QUESTIONS:
            raise too_many_questions(limit=MAX_QUESTIONS)
        before = Question(id=body.id, serial=serial)
    return {**contest, body.id: msgspec.structs.replace(before, **msgspec.structs.asdict(body))}


def without_question(contest: Contest, question_id: str) -> Contest:
    """Remove a question; raises `NotFound` if there is none."""
    removed = question_of(contest, question_id, sees_inactive=True)
    return {each: question for each, question in contest.items() if question is not removed}


def with_option(contest: Contest, question_id: str, option: Option) -> Contest:
    """Add an option, or replace the option with its id. Raises `NotFound` and `BadRequest`."""
    _check(option, "option.")
    question = question_of(contest, question_id, sees_inactive=True)
    if question.has_option(option.id):
        options = tuple(option if each.id == option.id else each for each in question.options)
    elif len(question.options) < MAX_OPTIONS:
        options = (*question.options, option)
    else:
        raise too_many_options(limit=MAX_OPTIONS)
    return {**contest, question_id: msgspec.structs.replace(question, options=options)}


def without_option(contest: Contest, question_id: str, option_id: str) -> Contest:
    """Remove an option; raises `NotFound` if there is none, `BadRequest` if it is the current winner."""
    question = question_of(contest, question_id, sees_inactive=True)
    check_option(question, option_id)
    if question.winner == option_id:
        raise option_is_winner(question=question_id, option=option_id)
    options = tuple(each for each in question.options if each.id != option_id)
    return {**contest, question_id: msgspec.structs.replace(question, options=options)}


def with_state(contest: Contest, question_id: str, transition: str, winner: str) -> Contest:
    """Move a question to any state; only `state-results` has a `winner`. Raises `BadRequest` and `NotFound`."""
    if transition not in list(State):
        raise no_state(state=transition[:40], states=State)
    state, question = State(transition), question_of(contest, question_id, sees_inactive=True)
    if state is not State.RESULTS:
        winner = ""
    elif not winner:
        raise no_winner(question=question_id, state=state)
    else:
        check_option(question, winner)
    return {**contest, question_id: msgspec.structs.replace(question, state=state, winner=winner)}


def _check(body: Option, where: str) -> None:
    """Raise `BadRequest` naming the first member over its limit, prefixed with `where`."""
    checked_text(body.id, MAX_ID_LENGTH, reason="Invalid body", name=f"{where}id")
    for name, longest in _MAX_LENGTHS.items():
        text = getattr(body, name)
        if text is not UNSET and len(text) > longest:
            raise too_long(f"{where}{name}", size=len(text), unit="characters", limit=longest)
    if not -_MAX_ORDER <= sort_order(body) <= _MAX_ORDER:
        raise invalid_member(f"{where}order", sort_order(body), f"within -{_MAX_ORDER} to {_MAX_ORDER}")


@dataclass(eq=False, repr=False)
class Trivia:
    """Questions, votes and teams of all extensions.

    Records have the lifetime of state stores: questions from the last edit, voters from the last vote or joining.
    """

    _documents: Documents
    _clock: Clock
    _environment: Environment
    _commits: Commits

    async def edit_question(self, caller: Caller, body: QuestionBody) -> QuestionView:
        """Add an inactive question, or replace the texts of the question with this id."""
        serial = new_id()
        contest = await self._edit(caller, lambda contest: with_question(contest, body, serial=serial))
        return await self._view(caller, contest[body.id])

    async def remove_question(self, caller: Caller, question_id: str) -> None:
        """Remove a question and its votes; raises `NotFound` if there is none."""
        await self._edit(caller, lambda contest: without_question(contest, question_id))
        audit("questions deleted", caller, question=question_id)

    async def edit_option(self, caller: Caller, question_id: str, option: Option) -> QuestionView:
        """Add an option, or replace the option with its id; raises `NotFound` for an unknown question."""
        contest = await self._edit(caller, lambda contest: with_option(contest, question_id, option))
        return await self._view(caller, contest[question_id])

    async def remove_option(self, caller: Caller, question_id: str, option_id: str) -> QuestionView:
        """Remove an option, whose votes no longer count; raises `NotFound` if there is none."""
        contest = await self._edit(caller, lambda contest: without_option(contest, question_id, option_id))
        audit("options deleted", caller, question=question_id, option=option_id)
        return await self._view(caller, contest[question_id])

    async def set_state(self, caller: Caller, question_id: str, transition: str, winner: str) -> State:
        """Move a question to another state, and return it. A concurrent vote counts before the move or is refused."""
        contest = await self._edit(caller, lambda contest: with_state(contest, question_id, transition, winner))
        return contest[question_id].state

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        """Count the questions of an extension."""
        key = contest_key(caller.client_id)
        found = await self._documents.read([key], now=self._clock.now())
        return Measured({"": len(decoded_contest(found.get(key)))})

    async def questions(self, caller: Caller) -> list[QuestionView]:
        """Return the questions that the caller may see, with the caller's votes."""
        contest, voter = await self._read(caller)
        seen = (each for each in contest.values() if each.state is not State.INACTIVE or sees_inactive(caller))
        return [view_of(each, voter.vote(each)) for each in sorted(seen, key=sort_order)]

    async def question(self, caller: Caller, question_id: str) -> QuestionView:
        """Return one question with the caller's vote. Raises `NotFound` if there is none that the caller may see."""
        contest, voter = await self._read(caller)
        question = question_of(contest, question_id, sees_inactive=sees_inactive(caller))
        return view_of(question, voter.vote(question))

    async def vote(self, caller: Caller, channel: str | None, question_id: str, option_id: str) -> None:
        """Record or replace the caller's vote; the first one sets the team. Raises `BadRequest` and `NotFound`."""
        contest_record, voter_record = contest_key(caller.client_id), voter_key(caller)

        def change(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            contest = decoded_contest(found.get(contest_record))
            voter = with_vote(decoded_voter(found.get(voter_record)), caller, contest, question_id, option_id)
            return {voter_record: json_codec.encode(with_team(voter, caller, channel))}

        await self._update([contest_record, voter_record], change)

    async def join(self, caller: Caller, channel: str | None) -> str:
        """Join the channel's team unless the caller has one; returns the caller's team."""
        voter_record = voter_key(caller)

        def change(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            return {voter_record: json_codec.encode(with_team(decoded_voter(found.get(voter_record)), caller, channel))}

        written = await self._update([voter_record], change)
        return decoded_voter(written[voter_record]).team

    async def team(self, caller: Caller) -> str:
        """Return the caller's team; empty if there is none."""
        return (await self._read(caller))[1].team

    async def leaderboard(self, caller: Caller) -> list[TeamScore]:
        """Return the top teams. Reads every voter of the extension, a page at a time."""
        now = self._clock.now()
        standings = Standings((await self._read(caller))[0])
        key = voters_key(caller.client_id)
        notice(READ_ALL, key)
        users = await self._documents.users(key, after="", limit=_PAGE, now=now)
        while users:
            found = await self._documents.read([key._replace(user=user) for user in users], now=now)
            standings.add(map(decoded_voter, found.values()))
            users = await self._documents.users(key, after=users[-1], limit=_PAGE, now=now)
        return standings.best()

    async def _read(self, caller: Caller) -> tuple[Contest, Voter]:
        """Return the questions and the caller's record, read at one instant."""
        contest_record, voter_record = contest_key(caller.client_id), voter_key(caller)
        notice(READ, contest_record, voter_record)
        found = await self._documents.read([contest_record, voter_record], now=self._clock.now())
        return decoded_contest(found.get(contest_record)), decoded_voter(found.get(voter_record))

    async def _view(self, caller: Caller, question: Question) -> QuestionView:
        _, voter = await self._read(caller)
        return view_of(question, voter.vote(question))

    async def _edit(self, caller: Caller, edit: Callable[[Contest], Contest]) -> Contest:
        key = contest_key(caller.client_id)
        written = await self._update([key], lambda found: {key: encoded_contest(edit(decoded_contest(found.get(key))))})
        await self._commits.committed(Change(key, "edited", caller.opaque_id))
        return decoded_contest(written[key])

    async def _update(
        self, keys: list[Key], change: Callable[[Mapping[Key, bytes]], Mapping[Key, bytes]]
    ) -> dict[Key, bytes]:
        now = self._clock.now()
        notice(READ, *keys)
        expires_at = self._environment.expires_at(now, self._environment.state_lifetime)
        written = await self._documents.update(keys, change, now=now, expires_at=expires_at)
        notice(CHANGED, *written)
        return written


TRIVIA: Final = Kind(
    "trivia",
    "the extensions with trivia questions, with the sizes of these",
    (CONTEST,),
    Shape.DOCUMENTS,
    None,
    "trivia",
    STORED,
    waits_for=Subject("trivia", CONTEST, frozenset({"count"}), "*", shared="", is_named=False),
    measure=attrgetter("trivia.measure"),
)
