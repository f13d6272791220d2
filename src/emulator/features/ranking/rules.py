"""The records of rankings, and how to check one that comes from outside. No I/O."""

from __future__ import annotations

from typing import Final

from emulator.engines.records import BallotRecord, ChoiceRecord, EntryRecord
from emulator.engines.shapes import Terms
from emulator.stored import Stored, anything, text_of, wrong


def _check_ranking(record: BallotRecord) -> None:
    if record.definition is not None:
        raise wrong("definition", "a ranking has none")
    if record.terms != Terms():
        raise wrong("terms", "a ranking has no terms")


def _check_entry(record: EntryRecord) -> None:
    if record.entry.times != 1:
        raise wrong("times", f"{record.entry.times} is not 1: each user has one answer")
    text_of(record.entry.note, "note")


STORED: Final = (
    Stored(BallotRecord, "rank", _check_ranking),
    Stored(ChoiceRecord, "rank", anything),
    Stored(EntryRecord, "rank", _check_entry),
)
