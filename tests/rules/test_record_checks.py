"""Checks of records that are the same for every feature."""

from __future__ import annotations

import pytest

from emulator.engines.records import BallotRecord, EntryRecord, RecordChecks, SpentRecord
from emulator.engines.shapes import NEVER, BallotEntry, Key, Terms


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
