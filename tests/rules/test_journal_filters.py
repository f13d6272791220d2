"""Which entries of the journal a query selects."""

from __future__ import annotations

import pytest

from emulator.control.journal.rules import matches_of
from emulator.journal import REQUEST, Entry

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
