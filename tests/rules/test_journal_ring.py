"""The ring of the journal: bounded in bytes as measured, with marks that go on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from emulator.core.journal import REQUEST, Entry, Journal, JournalBudget
from emulator.core.settings import read_settings


def entry(body: bytes = b"", **members: object) -> Entry:
    made = Entry(REQUEST, 0, 0, "id", request=body)
    for name, value in members.items():
        setattr(made, name, value)
    return made


def filled(journal: Journal, number: int) -> Journal:
    for _ in range(number):
        journal.add(entry(b"x" * 1_000))
    return journal


def test_the_oldest_entries_are_removed_when_the_journal_is_full():
    journal = filled(Journal(JournalBudget(20_000)), 25)

    assert journal.size <= 20_000
    assert 25 == journal.mark
    assert [*range(25, 25 - len(journal), -1)] == [each.number for each in journal.newest()]
    assert 9 <= len(journal) <= 11


def test_the_largest_journal_loses_entries_and_a_quiet_one_keeps_them():
    budget = JournalBudget(20_000)
    quiet, busy = Journal(budget), Journal(budget)
    filled(quiet, 2)

    filled(busy, 100)

    assert ([1, 2], 100) == ([each.number for each in quiet.since(0, 10)], busy.since(0, 100)[-1].number)
    assert 10_000 < budget.size <= 20_000
    assert budget.size == quiet.size + busy.size


def test_a_cleared_journal_leaves_its_room_to_the_others():
    budget = JournalBudget(20_000)
    one, other = filled(Journal(budget), 10), filled(Journal(budget), 10)

    one.clear()
    filled(other, 10)

    assert (0, 10, other.size) == (len(one), len(other), budget.size)


FILL = """
import re, sys
from emulator.core.callers import Caller, Role
from emulator.core.journal import REQUEST, Entry, Journal, JournalBudget

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

def entry(number):
    sizes = {{"small": (11, 380), "medium": (number % 900, number % 600), "large": (4096, 4096),
             "mixed": (number * 7919 % 97 ** 2 % 4096, (number * 104729) % (2 << number % 12))}}["{kind}"]
    sent, answer = (b"%d" % number).ljust(sizes[0], b"x"), (b"%d" % number).ljust(sizes[1], b"y")
    caller = Caller(f"extension-{{number}}", Role.VIEWER, f"77{{number}}", f"user-{{number}}", f"U-{{number}}")
    path = f"/v1/e/vote?id=poll-{{number}}"
    return Entry(REQUEST, 0, 0, f"abcdef01-{{number}}", caller, "POST /v1/e/vote", path, 200, number * 0.001,
                 sent, len(sent), answer, len(answer), "", "")

for number in range(20_000):
    entry(number)
journal = Journal(JournalBudget({size}))
before, most = resident(), 0
for number in range({entries}):
    journal.add(entry(number))
    if number % 5_000 == 0:
        most = max(most, resident())
print(max(most, resident()) - before, len(journal))
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["small", "medium", "large", "mixed"])
def test_many_entries_take_no_more_memory_than_the_ring_may(kind: str):
    """The ring is filled at least ten times."""
    size = 16 * 1024 * 1024

    ran = subprocess.run(
        [sys.executable, "-c", FILL.format(kind=kind, size=size, entries=250_000)],
        capture_output=True,
        text=True,
        check=True,
    )

    grown, kept = map(int, ran.stdout.split())
    assert 0.5 * size < grown <= 1.2 * size, f"{grown / 2**20:.1f} MiB for {kept} entries"


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("0MiB", 0), ("65536", 65_536), ("64KiB", 65_536), ("16MiB", 16_777_216), ("1GiB", 1_073_741_824)],
)
def test_a_size_of_the_journal_is_read(text: str, size: int):
    assert (
        size == read_settings(production=False, data="sqlite://", check_data=str, extensions=None, journal=text).journal
    )


def test_the_journal_has_16_mib_by_default():
    assert 16_777_216 == read_settings(production=False, data="sqlite://", check_data=str, extensions=None).journal
