"""Checks of records that are the same for every feature."""

from __future__ import annotations

import pytest

from emulator.core.keys import NEVER, Key
from emulator.storage.records import (
    BallotRecord,
    ChoiceRecord,
    DocumentRecord,
    EntryRecord,
    Record,
    RecordChecks,
    RosterRecord,
)
from emulator.storage.shapes import BallotEntry, Terms

KEY = Key("poll", "my-extension", "lunch")
BALLOT = BallotRecord(KEY, NEVER, None, Terms())
ENTRY = EntryRecord(KEY, BallotEntry("U1", "a", 1, 0, b""))


@pytest.mark.parametrize(
    "records",
    [
        [ENTRY],
        [BALLOT, BALLOT],
        [BALLOT, DocumentRecord(KEY, NEVER, b"")],
        [BALLOT._replace(key=KEY._replace(name="z")), BALLOT],
        [BALLOT, ENTRY, ChoiceRecord(KEY, "a")],
        [RosterRecord(KEY, NEVER, b""), RosterRecord(KEY, NEVER, b"")],
    ],
    ids=lambda records: records[-1].__class__.__name__,
)
def test_records_that_cannot_be_are_refused(records: list[Record]):
    *before, wrong = records
    checks = RecordChecks()
    for record in before:
        checks.check(record)

    with pytest.raises(ValueError, match=r"\w"):
        checks.check(wrong)


def test_more_casts_than_any_engine_counts_are_refused():
    key, checks = Key("poll", "my-extension", "lunch"), RecordChecks()
    checks.check(BallotRecord(key, NEVER, None, Terms()))
    checks.check(EntryRecord(key, BallotEntry("U1", "a", 1 << 52, 0, b"")))

    with pytest.raises(ValueError, match="times: the total must be below 9007199254740992"):
        checks.check(EntryRecord(key, BallotEntry("U2", "a", 1 << 52, 0, b"")))
