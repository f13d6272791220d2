"""Checks of records that are the same for every feature."""

from __future__ import annotations

import pytest

from emulator.core.keys import NEVER, Key
from emulator.storage.records import (
    BallotRecord,
    ChoiceRecord,
    DocumentRecord,
    EntryRecord,
    ListItemsRecord,
    ListRecord,
    Record,
    RecordChecks,
    RosterRecord,
    SpentRecord,
)
from emulator.storage.shapes import BallotEntry, Terms

KEY = Key("poll", "my-extension", "lunch")
BALLOT = BallotRecord(KEY, NEVER, None, Terms())
ENTRY = EntryRecord(KEY, BallotEntry("U1", "a", 1, 0, b""), False)


@pytest.mark.parametrize(
    "records",
    [
        [ENTRY],
        [BALLOT, BALLOT],
        [BALLOT, DocumentRecord(KEY, NEVER, b"")],
        [BALLOT._replace(key=KEY._replace(name="z")), BALLOT],
        [BALLOT, ENTRY, ChoiceRecord(KEY, "a")],
        [ListRecord(KEY, NEVER), ListItemsRecord(KEY, ("a\0b",))],
        [RosterRecord(KEY._replace(channel=None), NEVER, b"")],
        [DocumentRecord(KEY._replace(name="\ud800"), NEVER, b"")],
        [DocumentRecord(KEY, -1, b"")],
        [DocumentRecord(KEY, NEVER + 1, b"")],
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
    checks.check(EntryRecord(key, BallotEntry("U1", "a", 1 << 52, 0, b""), whole=False))

    with pytest.raises(ValueError, match="times: all together must be below 9007199254740992"):
        checks.check(EntryRecord(key, BallotEntry("U2", "a", 1 << 52, 0, b""), whole=False))


@pytest.mark.parametrize(
    "digest", ["0a 0a " + "0" * 26, "0A" * 16, "0a" * 15, "0a" * 17, "٣" * 32, "0a" * 15 + "0\n", ""]
)
def test_a_digest_that_is_not_32_lower_case_hex_digits_is_refused(digest: str):
    with pytest.raises(ValueError, match="the digest must be 32 lower-case hex digits"):
        RecordChecks().check(SpentRecord(Key("codes", "my-extension", ""), digest))
