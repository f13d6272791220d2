"""Which entries of the journal a query selects."""

from __future__ import annotations

import pytest

from emulator.control.journal.rules import predicate
from emulator.core.callers import Caller, Role
from emulator.core.journal import DELIVERY, FRAME, REQUEST, Entry

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
    matches = predicate(query)

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
    matches = predicate({"search": search})

    assert matches is not None
    assert matches(entry)


def test_a_search_finds_no_other_letters():
    matches = predicate({"search": "äpfel"})

    assert matches is not None
    assert not matches(Entry(REQUEST, 0, 0, request="Apfel, öpfel".encode()))


def request(id: str, line: str, status: int, caller: Caller, body: bytes = b"", detail: str = "") -> Entry:
    method, path = line.split()
    name = f"{method} {path.partition('?')[0]}"
    return Entry(REQUEST, 0, 0, id, caller, name, path, status, request=body, detail=detail)


VIEWER = Caller("ext", Role.VIEWER, "777", "1", "Uone")
OWNER = Caller("ext", Role.BROADCASTER, "777", "777", "U777")
REQUESTS = [
    request("vote", "POST /v1/e/vote?id=a", 200, VIEWER),
    request("malformed", "POST /v1/e/vote?id=b", 400, Caller("ext", Role.VIEWER, "777", "2", "U2")),
    request("state", "POST /v1/e/channel_state", 200, OWNER, b'{"round":"Third"}'),
    request("refused", "POST /v1/e/channel_state", 403, VIEWER, detail="role is not authorized"),
    request("elsewhere", "GET /v1/e/vote?id=e", 200, Caller("other", Role.ADMIN, "888", "9", "U9")),
    Entry(FRAME, 0, 0, "frame", OWNER, "get state", "", 404),
]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"status": "4xx"}, ["malformed", "refused", "frame"]),
        ({"status": "none,403"}, ["refused"]),
        ({"path": "/v1/e/vote"}, ["vote", "malformed", "elsewhere"]),
        ({"path": "id=b"}, ["malformed"]),
        ({"method": "get"}, ["elsewhere"]),
        ({"method": "GET,POST", "path": "state"}, ["state", "refused"]),
        ({"role": "broadcaster,admin"}, ["state", "elsewhere", "frame"]),
        ({"client_id": "other"}, ["elsewhere"]),
        ({"channel_id": "888"}, ["elsewhere"]),
        ({"user": "1"}, ["vote", "refused"]),
        ({"user": "Uone"}, ["vote", "refused"]),
        ({"kind": "frame"}, ["frame"]),
        ({"search": "THIRD"}, ["state"]),
        ({"search": "not authorized"}, ["refused"]),
        ({"status": "2xx", "role": "viewer"}, ["vote"]),
    ],
)
def test_a_query_selects_entries_by_each_of_their_parts(query: dict[str, str], ids: list[str]):
    matches = predicate(query)

    assert matches is not None
    assert ids == [each.id for each in REQUESTS if matches(each)]


def test_none_selects_what_got_no_response_but_no_deliveries():
    matches = predicate({"status": "none,4xx"})
    entries = [Entry(kind, 0, 0, kind, status=status) for kind in (REQUEST, DELIVERY) for status in (0, 200, 404)]

    assert [(REQUEST, 0), (REQUEST, 404), (DELIVERY, 404)] == [
        (each.kind, each.status) for each in entries if matches is not None and matches(each)
    ]
