"""Which entries of the journal a query selects."""

from __future__ import annotations

import pytest

from emulator.control.journal.rules import matches_of
from emulator.core.journal import REQUEST, Entry

ENTRIES = [
    Entry(REQUEST, 0, 0, "same"),
    Entry(REQUEST, 0, 0, "refused", production="refused; rule=A1"),
    Entry(REQUEST, 0, 0, "changed", production="changed; rule=T2"),
    Entry(REQUEST, 0, 0, "probe-1"),
]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({}, ["same", "refused", "changed"]),
        ({"probes": "false"}, ["same", "refused", "changed"]),
        ({"probes": "true"}, ["same", "refused", "changed", "probe-1"]),
        ({"id": "probe-1"}, ["probe-1"]),
        ({"production": "any"}, ["refused", "changed"]),
        ({"production": "refused"}, ["refused"]),
        ({"production": "T2"}, ["changed"]),
        ({"production": "A1,changed"}, ["refused", "changed"]),
        ({"production": "X1"}, []),
    ],
)
def test_a_query_selects_probes_by_name_only_and_verdicts_by_rule(query: dict[str, str], ids: list[str]):
    matches = matches_of(query)

    assert ids == [each.id for each in ENTRIES if matches is None or matches(each)]


@pytest.mark.parametrize("search", ["ÄPFEL", "äpfel", "pfEL"])
@pytest.mark.parametrize(
    "entry",
    [
        Entry(REQUEST, 0, 0, request='{"key":"Äpfel"}'.encode()),
        Entry(REQUEST, 0, 0, response='{"key":"ÄPFEL"}'.encode()),
        Entry(REQUEST, 0, 0, response=b"\xff" + "äPfel".encode()),
        Entry(REQUEST, 0, 0, detail="äpfel"),
    ],
)
def test_a_search_ignores_the_case_of_all_letters(search: str, entry: Entry):
    matches = matches_of({"search": search})

    assert matches is not None
    assert matches(entry)


def test_a_search_finds_no_other_letters():
    matches = matches_of({"search": "äpfel"})

    assert matches is not None
    assert not matches(Entry(REQUEST, 0, 0, request="Apfel, öpfel".encode()))
