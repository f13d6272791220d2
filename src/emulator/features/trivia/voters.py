"""What is kept of one voter: the team, and a vote for each question. Pure.

One record, so that a first vote and the team that it fixes are written in one step, and read in one.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from emulator.callers import EXTENSION_WRITERS, Caller, Role
from emulator.engines.base import Key
from emulator.errors import BadRequest
from emulator.features.trivia.rules import Contest, Question, State, check_option, question_of


class Voter(Struct, frozen=True):
    """One user of one extension."""

    team: str = ""
    """The channel they vote for; empty before there is one."""
    is_broadcaster: bool = False
    """Whether that channel is their own."""
    votes: dict[str, str] = {}
    """The option chosen, by the serial of the question."""

    def vote(self, question: Question) -> str | None:
        """The option chosen; it may be gone by now."""
        return self.votes.get(question.serial)


def voter_key(caller: Caller) -> Key:
    """Where a voter's record is kept."""
    return voters_key(caller.client_id)._replace(user=caller.identity)


def voters_key(client_id: str) -> Key:
    """What the records of an extension's voters share."""
    return Key("trivia_voter", client_id, "")


def voter_of(text: bytes | None) -> Voter:
    """The voter in a record; one without team and votes if there is no record."""
    return Voter() if text is None else msgspec.json.decode(text, type=Voter)


def joined(voter: Voter, caller: Caller, channel: str | None) -> Voter:
    """The voter with a team: the one they have, else the channel they watch. A broadcaster's is always their own.

    Raises `BadRequest` for one who has neither a team nor a channel.
    """
    if caller.role is Role.BROADCASTER and channel:
        return msgspec.structs.replace(voter, team=channel, is_broadcaster=True)
    if voter.team:
        return voter
    if not channel:
        raise BadRequest("Invalid channel", "a team is a channel: a token with channel_id, or ?channel_id=, is needed")
    return msgspec.structs.replace(voter, team=channel)


def voted(voter: Voter, caller: Caller, contest: Contest, question_id: str, option_id: str) -> Voter:
    """The voter with this vote in place of an earlier one, and without those for questions that are gone.

    Raises `NotFound` for an unknown question or option, and `BadRequest` while the question takes no votes.
    """
    question = question_of(contest, question_id, sees_inactive=sees_inactive(caller))
    if question.state is not State.UNLOCKED:
        raise BadRequest(
            "question is not unlocked", f"{question_id} is in {question.state}; {State.UNLOCKED} takes votes"
        )
    check_option(question, option_id)
    serials = {each.serial for each in contest.values()}
    votes = {serial: option for serial, option in voter.votes.items() if serial in serials}
    return msgspec.structs.replace(voter, votes={**votes, question.serial: option_id})


def sees_inactive(caller: Caller) -> bool:
    """Whether inactive questions are there for this caller: for those who may edit them."""
    return caller.role in EXTENSION_WRITERS
