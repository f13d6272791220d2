"""The ring of the journal: bounded in bytes as measured, with marks that go on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from emulator.clock import Clock
from emulator.journal import REQUEST, Entry, Journal, JournalBudget


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


def test_an_entry_larger_than_the_ring_leaves_it_empty():
    journal = filled(Journal(JournalBudget(1_500)), 3)

    assert (0, 0, 3) == (len(journal), journal.size, journal.mark)


@pytest.mark.parametrize(("mark", "limit", "before", "numbers"), [
    (0, 100, None, [*range(16, 26)]), (20, 100, None, [21, 22, 23, 24, 25]), (20, 2, None, [21, 22]),
    (25, 100, None, []), (99, 100, None, []), (0, 100, 18, [16, 17]), (0, 100, 10, []), (23, 1, 25, [24]),
])  # fmt: skip
def test_entries_since_a_mark_are_oldest_first(mark: int, limit: int, before: int | None, numbers: list[int]):
    journal = filled(Journal(JournalBudget(20_000)), 25)
    assert 10 == len(journal), "the size of an entry has changed: adapt the numbers"
    assert numbers == [each.number for each in journal.since(mark, limit, before=before)]


@pytest.mark.parametrize(("mark", "limit", "after", "numbers"), [
    (25, 100, 0, [*range(25, 15, -1)]), (25, 2, 0, [25, 24]), (18, 100, 0, [18, 17, 16]), (18, 100, 17, [18]),
    (99, 1, 0, [25]), (15, 100, 0, []), (0, 100, 0, []),
])  # fmt: skip
def test_entries_up_to_a_mark_are_newest_first(mark: int, limit: int, after: int, numbers: list[int]):
    journal = filled(Journal(JournalBudget(20_000)), 25)

    assert numbers == [each.number for each in journal.until(mark, limit, after=after)]


def test_lost_entries_are_counted_from_a_mark():
    journal = filled(Journal(JournalBudget(20_000)), 25)

    assert [15, 10, 0, 0] == [journal.lost_since(mark) for mark in (0, 5, 20, 25)]


def test_clearing_keeps_the_marks():
    journal = filled(Journal(JournalBudget(20_000)), 25)
    journal.clear()

    assert (0, 0, 25, 25) == (len(journal), journal.size, journal.mark, journal.lost_since(0))
    assert [] == journal.since(0, 10)
    assert [26] == [each.number for each in filled(journal, 1).since(0, 10)]


def test_the_largest_journal_loses_entries_and_a_quiet_one_keeps_them():
    budget = JournalBudget(20_000)
    quiet, busy = Journal(budget), Journal(budget)
    filled(quiet, 2)

    filled(busy, 100)

    assert ([1, 2], 100) == ([each.number for each in quiet.since(0, 10)], busy.since(0, 100)[-1].number)
    assert 10_000 < budget.size <= 20_000
    assert budget.size == quiet.size + busy.size


def test_journals_of_one_size_share_the_budget():
    budget = JournalBudget(40_000)
    journals = [Journal(budget) for _ in range(4)]

    for _ in range(100):
        for each in journals:
            filled(each, 1)

    assert budget.size <= 40_000
    assert all(3 <= len(each) <= 7 for each in journals)


def test_the_newest_entries_can_be_read_while_others_arrive():
    journal = filled(Journal(JournalBudget(20_000)), 3)
    newest = journal.newest(2)

    filled(journal, 1)

    assert [3, 2] == [each.number for each in newest]


def test_a_cleared_journal_leaves_its_room_to_the_others():
    budget = JournalBudget(20_000)
    one, other = filled(Journal(budget), 10), filled(Journal(budget), 10)

    one.clear()
    filled(other, 10)

    assert (0, 10, other.size) == (len(one), len(other), budget.size)


def test_an_entry_has_the_time_of_both_clocks():
    now = 1_000_000
    clock = Clock(lambda: now)
    clock.advance(500)
    journal = Journal(JournalBudget(20_000), clock)

    journal.add(entry())

    [added] = journal.newest()
    assert (1_000_500, 500) == (added.at, added.offset)


def test_texts_that_are_not_ascii_count_for_more():
    one, other = Journal(JournalBudget(100_000)), Journal(JournalBudget(100_000))
    one.add(entry(detail="x" * 100, path="x" * 100, recipients="x" * 100))
    other.add(entry(detail="é" * 100, path="→" * 100, recipients="😀" * 100))
    assert 100 + 300 <= other.size - one.size  # beyond the first byte of each character


FILL = """
import re, sys
from emulator.callers import Caller, Role
from emulator.journal import REQUEST, Entry, Journal, JournalBudget

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
