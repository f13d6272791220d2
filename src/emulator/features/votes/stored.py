"""The records of polls, and how to check one that comes from outside. No I/O."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from emulator.contract.limits import HIGHEST, LOWEST, MAX_VOTES
from emulator.engines.records import BallotRecord, ChoiceRecord, EntryRecord
from emulator.engines.shapes import Terms
from emulator.errors import BadRequest
from emulator.features.votes.definitions import Definition, reconfigured, terms_of
from emulator.features.votes.rules import checked_poll_id
from emulator.stored import Stored, decoded, wrong


class Vote(Struct):
    """One entry of the vote log.

    The engine stores this JSON with the vote of a user who shares their id, so that reading the log only joins bytes.
    """

    identifier: str
    opaque: str
    value: int
    timestamp: int
    count: int | UnsetType = UNSET
    """This user's votes for this value; only in polls where votes add up."""


class Voter(Struct):
    """The first members of a log entry. Earlier versions stored them, without `}`, as the note of a vote."""

    identifier: str
    opaque: str


def _check_poll(record: BallotRecord) -> None:
    checked_poll_id(record.key.name)
    terms = Terms()
    if record.definition is not None:
        definition = decoded(record.definition, Definition, "definition")
        if definition.id != record.key.name:
            raise wrong("definition", f"id: {definition.id[:64]!r} is not the id of the poll")
        try:
            terms = terms_of(reconfigured(definition, {}, now=0))
        except BadRequest as error:
            raise wrong("definition", "; ".join(error.details)) from None
    for name, found, needed in zip(terms._fields, record.terms, terms, strict=True):
        if found != needed:
            raise wrong(name, f"{found} is not {needed}, as in the definition")


def _check_choice(record: ChoiceRecord) -> None:
    _check_value(record.choice)


def _check_entry(record: EntryRecord) -> None:
    entry = record.entry
    _check_value(entry.choice)
    if not 1 <= entry.times <= MAX_VOTES:
        raise wrong("times", f"{entry.times} is not within 1 to {MAX_VOTES}")
    if record.whole or entry.note.endswith(b"}"):
        vote = decoded(entry.note, Vote, "note")
        if (vote.value, vote.timestamp) != (int(entry.choice), entry.cast_at):
            raise wrong("note", f"has value {vote.value} at {vote.timestamp}, unlike the entry")
    elif entry.note:
        decoded(entry.note + b"}", Voter, "note")


def _check_value(choice: str) -> None:
    if choice not in _VALUES:
        raise wrong("choice", f"{choice[:40]!r} is not within {LOWEST} to {HIGHEST}")


_VALUES: Final = frozenset(map(str, range(LOWEST, HIGHEST + 1)))
STORED: Final = (
    Stored(BallotRecord, "poll", _check_poll),
    Stored(ChoiceRecord, "poll", _check_choice),
    Stored(EntryRecord, "poll", _check_entry),
)
