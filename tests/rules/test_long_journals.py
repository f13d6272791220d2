"""Reading a long journal lets other requests run, also if nothing in it is selected."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from emulator.control.journal.rules import matches_of
from emulator.control.journal.service import Journals
from emulator.control.waits.entries import EntryCount
from emulator.journal import REQUEST, Entry, Journal, JournalBudget

ENTRIES = 3_000
NOTHING = {"search": "no entry has this text"}


async def read_pages(journal: Journal) -> None:
    await Journals(journal, "default").page(NOTHING)


async def read_stream(journal: Journal) -> None:
    async for _ in Journals(journal, "default").stream({**NOTHING, "since": "0", "timeout": "0"}):
        pass


async def count_entries(journal: Journal) -> None:
    await EntryCount(journal, matches_of, NOTHING, "*", 0).count()


async def turns_of_others(read: Callable[[Journal], Awaitable[None]], journal: Journal) -> int:
    """Return how often another task ran during the read."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await read(journal)
    task.cancel()
    return turns


@pytest.mark.parametrize("read", [read_pages, read_stream, count_entries])
def test_other_requests_run_while_a_long_journal_is_read(read: Callable[[Journal], Awaitable[None]]):
    journal = Journal(JournalBudget(100_000_000))
    for _ in range(ENTRIES):
        journal.add(Entry(REQUEST, 0, 0, "id"))

    assert asyncio.run(turns_of_others(read, journal)) >= ENTRIES // 500
