"""Everything the service promises about trivia. Questions are the extension's, whatever the channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from emulator.callers import Caller
from emulator.clock import Clock
from emulator.config.environment import Environment
from emulator.engines.base import Documents, Key
from emulator.features.trivia.edits import with_option, with_question, with_state, without_option, without_question
from emulator.features.trivia.leaderboard import Standings, TeamScore
from emulator.features.trivia.rules import (
    Contest,
    Option,
    Question,
    QuestionBody,
    QuestionView,
    State,
    contest_key,
    contest_of,
    place_of,
    question_of,
    shown,
    text_of,
)
from emulator.features.trivia.voters import Voter, joined, sees_inactive, voted, voter_key, voter_of, voters_key
from emulator.ids import token_id as new_id
from emulator.wire import json_codec

_PAGE: Final = 500


class Trivia:
    """Questions, votes and teams of all extensions.

    The questions of an extension live, all together, as long as a state store does after the last edit or change of
    state. A voter's team and votes live as long after the last vote or joining.
    """

    def __init__(self, documents: Documents, clock: Clock, environment: Environment) -> None:
        self._documents = documents
        self._clock = clock
        self._environment = environment

    async def edit_question(self, caller: Caller, body: QuestionBody) -> QuestionView:
        """Add a question, inactive, or give the one of its id other texts."""
        serial = new_id()
        contest = await self._edit(caller, lambda contest: with_question(contest, body, serial=serial))
        return await self._shown(caller, contest[body.id])

    async def remove_question(self, caller: Caller, question_id: str) -> None:
        """Remove a question and its votes. Raises `NotFound`."""
        await self._edit(caller, lambda contest: without_question(contest, question_id))

    async def edit_option(self, caller: Caller, question_id: str, option: Option) -> QuestionView:
        """Add an option to a question, or replace the one of its id. Raises `NotFound`."""
        contest = await self._edit(caller, lambda contest: with_option(contest, question_id, option))
        return await self._shown(caller, contest[question_id])

    async def remove_option(self, caller: Caller, question_id: str, option_id: str) -> QuestionView:
        """Remove an option; votes for it count no more. Raises `NotFound`."""
        contest = await self._edit(caller, lambda contest: without_option(contest, question_id, option_id))
        return await self._shown(caller, contest[question_id])

    async def set_state(self, caller: Caller, question_id: str, transition: str, winner: str) -> State:
        """Move a question to another state, and return that. A vote is taken wholly before it or refused."""
        contest = await self._edit(caller, lambda contest: with_state(contest, question_id, transition, winner))
        return contest[question_id].state

    async def questions(self, caller: Caller) -> list[QuestionView]:
        """The questions that this caller sees, and what they voted."""
        contest, voter = await self._read(caller)
        seen = (each for each in contest.values() if each.state is not State.INACTIVE or sees_inactive(caller))
        return [shown(each, voter.vote(each)) for each in sorted(seen, key=place_of)]

    async def question(self, caller: Caller, question_id: str) -> QuestionView:
        """One of them. Raises `NotFound`."""
        contest, voter = await self._read(caller)
        question = question_of(contest, question_id, sees_inactive=sees_inactive(caller))
        return shown(question, voter.vote(question))

    async def vote(self, caller: Caller, channel: str | None, question_id: str, option_id: str) -> None:
        """Record or replace the caller's vote; the first one fixes the team. Refused, it leaves everything as it was.

        Raises `BadRequest` while the question takes no votes, `NotFound` for an unknown question or option.
        """
        contest_at, voter_at = contest_key(caller.client_id), voter_key(caller)

        def change(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            contest = contest_of(found.get(contest_at))
            voter = voted(voter_of(found.get(voter_at)), caller, contest, question_id, option_id)
            return {voter_at: json_codec.encode(joined(voter, caller, channel))}

        await self._update([contest_at, voter_at], change)

    async def join(self, caller: Caller, channel: str | None) -> str:
        """Give the caller a team, if they have none: the channel. Returns the team they are in."""
        voter_at = voter_key(caller)

        def change(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            return {voter_at: json_codec.encode(joined(voter_of(found.get(voter_at)), caller, channel))}

        written = await self._update([voter_at], change)
        return voter_of(written[voter_at]).team

    async def team(self, caller: Caller) -> str:
        """The caller's team; empty before there is one."""
        return (await self._read(caller))[1].team

    async def leaderboard(self, caller: Caller) -> list[TeamScore]:
        """How the teams stand. Reads every voter of the extension, a page at a time."""
        now = self._clock.now()
        standings = Standings((await self._read(caller))[0])
        shelf = voters_key(caller.client_id)
        holders = await self._documents.users(shelf, after="", limit=_PAGE, now=now)
        while holders:
            found = await self._documents.read([shelf._replace(user=each) for each in holders], now=now)
            standings.add(map(voter_of, found.values()))
            holders = await self._documents.users(shelf, after=holders[-1], limit=_PAGE, now=now)
        return standings.best()

    async def _read(self, caller: Caller) -> tuple[Contest, Voter]:
        """The questions and the caller's own record, at one instant."""
        contest_at, voter_at = contest_key(caller.client_id), voter_key(caller)
        found = await self._documents.read([contest_at, voter_at], now=self._clock.now())
        return contest_of(found.get(contest_at)), voter_of(found.get(voter_at))

    async def _shown(self, caller: Caller, question: Question) -> QuestionView:
        _, voter = await self._read(caller)
        return shown(question, voter.vote(question))

    async def _edit(self, caller: Caller, edit: Callable[[Contest], Contest]) -> Contest:
        key = contest_key(caller.client_id)
        written = await self._update([key], lambda found: {key: text_of(edit(contest_of(found.get(key))))})
        return contest_of(written[key])

    async def _update(
        self, keys: list[Key], change: Callable[[Mapping[Key, bytes]], Mapping[Key, bytes]]
    ) -> dict[Key, bytes]:
        now = self._clock.now()
        ends_at = self._environment.ends(now, self._environment.state_lifetime)
        return await self._documents.update(keys, change, now=now, expires_at=ends_at)
