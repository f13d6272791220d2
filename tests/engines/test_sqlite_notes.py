"""SQLite joins notes to the entries, which it reads row by row."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.storage.engine import Engine
from emulator.storage.opening import open_engine
from emulator.storage.shapes import BallotEntry, CastRequest, Terms
from emulator.storage.sqlite import entries as readings
from engines.shorthand import END, NOW, all_of, key
from support.examples import examples

BALLOTS = (key(), key("other"))
WHOLE = b"whole"
CASTS = st.lists(
    st.tuples(
        st.sampled_from([BALLOTS[0], *BALLOTS]),
        st.sampled_from("ABCDEF"),
        st.sampled_from([0, 0, 1, 5, -3]),  # by which the clock moves
        st.sampled_from([1, 1, 1, 2]),  # times
        st.sampled_from([True, True, False]),  # whether the note is whole
    ),
    max_size=30,
)


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "JOINED_PAGE", 3)


@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CASTS, st.integers(-5, 15), st.none() | st.integers(0, 12))
def test_joined_notes_equal_the_notes_of_the_entries(casts: list[Any], since: int, limit: int | None) -> None:
    asyncio.run(compare(casts, NOW + since, limit))


async def compare(casts: list[Any], since: int, limit: int | None) -> None:
    async with open_engine("sqlite://", namespace="main") as engine:
        await cast_all(engine, casts)
        for ballot in BALLOTS:
            left = iter(await all_of(engine.ballots.entries(ballot, now=NOW, since=since, limit=limit)))
            async for page in engine.ballots.notes(ballot, now=NOW, separator=b",", since=since, limit=limit):
                assert holds(page, left)
            assert [] == list(left)


async def cast_all(engine: Engine, casts: list[Any]) -> None:
    now = NOW
    for ballot in BALLOTS:
        terms = Terms(per_voter=6, per_choice=6)
        await engine.ballots.define(ballot, b"", terms, now=now, expires_at=END)
    for number, (ballot, voter, step, times, whole) in enumerate(casts):
        now += step
        note = b"%d %b" % (number, WHOLE if whole else b"")
        request = CastRequest(voter, "a", note, times=times, whole=whole)
        await engine.ballots.cast(ballot, request, now=now, expires_at=END)


def holds(page: bytes | Sequence[BallotEntry], left: Iterator[BallotEntry]) -> bool:
    """Whether a page is the next entries. A joined page has no entry that its note does not describe."""
    if not isinstance(page, bytes):
        return list(page) == list(islice(left, len(page)))
    notes = page.split(b",")
    entries = list(islice(left, len(notes)))
    return notes == [entry.note for entry in entries if entry.times == 1 and entry.note.endswith(WHOLE)]
