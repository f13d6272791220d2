"""Trivia questions, their states and views, and the records of voters. No I/O.

An extension's questions are one record, so edits are atomic. A voter's record holds both the team and the votes, so
that a first vote and its team are one write.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.callers import EXTENSION_WRITERS, Caller, Role, required_channel
from emulator.contract.limits import MAX_ID_LENGTH
from emulator.engines.records import DocumentRecord
from emulator.engines.shapes import Key
from emulator.features.trivia.refusals import contest_too_large, no_option, no_question, not_unlocked, question_not_open
from emulator.stored import VALUE, Stored, decode_check, decoded, wrong
from emulator.wire import json_codec

CONTEST: Final = "trivia"
"""The kind of the record with an extension's questions."""
MAX_BYTES: Final = 512 * 1024
"""The limit of an extension's questions as compact JSON. It is small because every vote reads them all."""


class State(StrEnum):
    """The state of a question: who sees it, and whether it takes votes."""

    INACTIVE = "state-inactive"
    """Visible to admin and backend only."""
    UNLOCKED = "state-unlocked"
    """Visible to all, and open for votes."""
    LOCKED = "state-locked"
    """Visible to all, and closed for votes."""
    RESULTS = "state-results"
    """Visible to all with its winner, and closed for votes."""


class Option(Struct, frozen=True):
    """An option to choose."""

    id: str
    name: str = ""
    short_name: str = ""
    description: str = ""
    image: str | UnsetType = UNSET
    order: int | float | UnsetType = UNSET
    """Options and questions are sorted by `order`, 0 if absent, then by age."""


class QuestionBody(Option, frozen=True):
    """A question as a client sends it. It has the same members as an option."""


class Question(QuestionBody, frozen=True, kw_only=True):
    """A stored question."""

    serial: str
    """Unique per question, so that votes for a removed question do not count for a later one with its id."""
    state: State = State.INACTIVE
    winner: str = ""
    """An option id in `state-results`; empty in all other states."""
    options: tuple[Option, ...] = ()

    def has_option(self, option_id: str) -> bool:
        return any(each.id == option_id for each in self.options)


Contest = dict[str, Question]
"""The questions of an extension by id, oldest first."""


class Results(Struct):
    """The caller's vote and the winner; each is absent if unknown."""

    you: str | UnsetType = UNSET
    """The id of the option that the caller voted for."""
    winner: str | UnsetType = UNSET


class QuestionView(QuestionBody, frozen=True, kw_only=True):
    """A question as a client reads it."""

    state: State
    options: list[Option]
    results: Results


def contest_key(client_id: str) -> Key:
    return Key(CONTEST, client_id, "")


def decoded_contest(text: bytes | None) -> Contest:
    """Decode an extension's stored questions; `None` means no questions."""
    return {} if text is None else msgspec.json.decode(text, type=Contest)


def encoded_contest(contest: Contest) -> bytes:
    """Encode an extension's questions; raises `BadRequest` if they are over 512 KiB."""
    text = json_codec.encode(contest)
    if len(text) > MAX_BYTES:
        raise contest_too_large(size=len(text), limit=MAX_BYTES)
    return text


def question_of(contest: Contest, question_id: str, *, sees_inactive: bool) -> Question:
    """Return the question with this id; raises `NotFound` if there is none or the caller may not see it."""
    question = contest.get(question_id)
    if question is None or (question.state is State.INACTIVE and not sees_inactive):
        shown = question_id[:MAX_ID_LENGTH]
        raise no_question(question=shown) if sees_inactive else question_not_open(question=shown)
    return question


def check_option(question: Question, option_id: str) -> None:
    """Raise `NotFound` if the question has no option with this id."""
    if not question.has_option(option_id):
        raise no_option(question=question.id, option=option_id[:MAX_ID_LENGTH])


def view_of(question: Question, vote: str | None) -> QuestionView:
    """Return a question as a user who voted for `vote` sees it. A vote for a removed option is left out."""
    body = {name: getattr(question, name) for name in QuestionBody.__struct_fields__}
    results = Results(
        you=vote if vote is not None and question.has_option(vote) else UNSET, winner=question.winner or UNSET
    )
    return QuestionView(**body, state=question.state, options=sorted(question.options, key=sort_order), results=results)


def sort_order(option: Option) -> float:
    return 0 if option.order is UNSET else option.order


def _check_contest(record: DocumentRecord) -> None:
    contest = decoded(record.value, Contest, VALUE)
    encoded_contest(contest)
    for id, question in contest.items():
        if question.id != id:
            where, found = f"{VALUE}.{id[:MAX_ID_LENGTH]}", question.id[:MAX_ID_LENGTH]
            raise wrong(where, f"id: {found!r} is not the same")


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


STORED: Final = (
    Stored(DocumentRecord, CONTEST, _check_contest),
    Stored(DocumentRecord, VOTER, decode_check(Voter)),
)
