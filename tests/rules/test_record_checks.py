"""Checks of records that are the same for every feature."""

from __future__ import annotations

import pytest

from emulator.engines.base import NEVER, BallotEntry, Key, Terms
from emulator.engines.records import BallotRecord, EntryRecord, RecordChecks


def test_more_casts_than_any_engine_counts_are_refused():
    key, checks = Key("poll", "my-extension", "lunch"), RecordChecks()
    checks.check(BallotRecord(key, NEVER, None, Terms()))
    checks.check(EntryRecord(key, BallotEntry("U1", "a", 1 << 52, 0, b""), whole=False))

    with pytest.raises(ValueError, match="times: all together must be below 9007199254740992"):
        checks.check(EntryRecord(key, BallotEntry("U2", "a", 1 << 52, 0, b""), whole=False))
