"""A voter's record. It holds both the team and the votes, so that a first vote and its team are one write. No I/O."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from emulator.callers import EXTENSION_WRITERS, Caller, Role, required_channel
from emulator.engines.records import DocumentRecord
from emulator.engines.shapes import Key
from emulator.features.trivia.refusals import not_unlocked
from emulator.features.trivia.rules import Contest, Question, State, check_option, question_of
from emulator.stored import Stored, decode_check

VOTER: Final = "trivia_voter"
"""The kind of a voter's record."""


class Voter(Struct, frozen=True):
    """One user of one extension."""

    team: str = ""
    """The channel that the votes score for; empty if not set yet."""
    is_broadcaster: bool = False
    """Whether the voter owns that channel."""
    votes: dict[str, str] = {}
    """Option ids by the serial of the question."""

    def vote(self, question: Question) -> str | None:
        """Return the id of the option voted for, which may have been removed since; `None` without a vote."""
        return self.votes.get(question.serial)


def voter_key(caller: Caller) -> Key:
    return voters_key(caller.client_id)._replace(user=caller.opaque_id)


def voters_key(client_id: str) -> Key:
    """Return the key of an extension's voters, without the part `user`, which identifies one voter."""
    return Key(VOTER, client_id, "")


def decoded_voter(text: bytes | None) -> Voter:
    """Decode a voter's record; `None` means a voter without a team and votes."""
    return Voter() if text is None else msgspec.json.decode(text, type=Voter)


def with_team(voter: Voter, caller: Caller, channel: str | None) -> Voter:
    """Return the voter with a team: the earlier team, or `channel` for a voter without one and for any broadcaster.

    Raises `BadRequest`.
    """
    if caller.role is Role.BROADCASTER and channel:
        return msgspec.structs.replace(voter, team=channel, is_broadcaster=True)
    if voter.team:
        return voter
    return msgspec.structs.replace(voter, team=required_channel(channel, "a team"))


def with_vote(voter: Voter, caller: Caller, contest: Contest, question_id: str, option_id: str) -> Voter:
    """Return the voter with this vote, and without votes for removed questions. Raises `NotFound` and `BadRequest`."""
    question = question_of(contest, question_id, sees_inactive=sees_inactive(caller))
    if question.state is not State.UNLOCKED:
        raise not_unlocked(question=question_id, state=question.state, takes_votes=State.UNLOCKED)
    check_option(question, option_id)
    serials = {each.serial for each in contest.values()}
    votes = {serial: option for serial, option in voter.votes.items() if serial in serials}
    return msgspec.structs.replace(voter, votes={**votes, question.serial: option_id})


def sees_inactive(caller: Caller) -> bool:
    """Whether the caller may see inactive questions: admin and backend may."""
    return caller.role in EXTENSION_WRITERS


STORED: Final = (Stored(DocumentRecord, VOTER, decode_check(Voter)),)
