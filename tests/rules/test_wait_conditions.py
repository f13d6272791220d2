"""Conditions of a wait: what a query means, and what meets it."""

from __future__ import annotations

import pytest

from emulator.control.waits import rules
from emulator.control.waits.rules import Condition, parse_timeout, subjects_of
from emulator.core.errors import BadRequest
from emulator.core.keys import Key
from emulator.feature_list import FEATURES
from emulator.features.kinds import Measured

SCOPE = {"client_id": "ext", "channel_id": "777"}
SUBJECTS = subjects_of(FEATURES.kinds)


def condition_of(query: dict[str, str]) -> Condition:
    return rules.parse_condition(query, SUBJECTS)


def wanted(**query: str) -> dict[str, str]:
    """What a query wants."""
    return condition_of(SCOPE | {name.rstrip("_"): value for name, value in query.items()}).wanted()


def refusal(**query: str) -> str:
    """Why a query is refused."""
    with pytest.raises(BadRequest) as refused:
        wanted(**query)
    return refused.value.detail


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"for_": "poll"}, {"count": "at least 1"}),
        ({"for_": "poll", "count": "3"}, {"count": "at least 3"}),
        ({"for_": "poll", "count": "=0"}, {"count": "exactly 0"}),
        ({"for_": "poll", "sum": "-4"}, {"sum": "at least -4"}),
        ({"for_": "poll", "value": "0=2"}, {"value 0": "at least 2"}),
        ({"for_": "poll", "value": "-99==2,07=1"}, {"value -99": "exactly 2", "value 7": "at least 1"}),
        ({"for_": "rank", "key": "blue"}, {"score of blue": "at least 1"}),
        ({"for_": "rank", "key": "a=b,c", "score": "=2"}, {"score of a=b,c": "exactly 2"}),
        ({"for_": "accumulate", "latest": '{"a": 1.50}'}, {"latest": '{"a":1.5}'}),
        ({"for_": "store", "id": "channel_state"}, {"document": "any value"}),
        ({"for_": "store", "id": "channel_state", "path": "/a", "equals": "false"}, {"/a": "false"}),
        ({"for_": "json_store", "since": "5"}, {"document": "any value", "writes": "at least 1"}),
        ({"for_": "pin", "id": "used", "count": "2"}, {"count": "at least 2"}),
        ({"for_": "broadcast", "id": "goal"}, {"count": "at least 1"}),
    ],
    ids=str,
)
def test_a_query_names_what_is_wanted(query: dict[str, str], expected: dict[str, str]):
    assert expected == wanted(**query)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({}, "for: '' is not one of poll, rank"),
        ({"for_": "poll", "counts": "3"}, "counts: does not apply to poll; use one of count, sum, value"),
        ({"for_": "poll", "count": "0"}, "count: at least 0 is always true; =0 means exactly 0"),
        ({"for_": "poll", "count": "-1"}, "count: -1 is not 0 or more"),
        ({"for_": "poll", "count": "three"}, "count: 'three' is not a number"),
        ({"for_": "poll", "value": "0"}, "value: '0' is not VALUE=COUNT"),
        ({"for_": "poll", "value": "100=1"}, "value: '100=1' is not VALUE=COUNT"),
        ({"for_": "rank", "score": "2"}, "key: is missing"),
        ({"for_": "accumulate", "latest": "{"}, "latest: '{' is not JSON"),
        ({"for_": "store", "id": "channel_state", "path": "a"}, "path: 'a' is not a JSON pointer"),
        ({"for_": "store", "id": "channel_state", "equals": "red"}, "equals: 'red' is not JSON; put a string in"),
        ({"for_": "pin"}, "id: is missing: one of issued, used, revoked"),
        ({"for_": "poll", "client_id": ""}, "client_id: is missing"),
        ({"for_": "poll", "id": "a\n"}, "id: must be 1 to 4096 printable characters"),
        ({"for_": "poll", "since": "-1"}, "since: '-1' is not a mark"),
        ({"for_": "broadcast", "id": "goal", "count": "2001"}, "count: 2001 is not at most 2000, because"),
        ({"for_": "poll", "value": "1=2001", "since": "1"}, "value: 2001 is not at most 2000"),
        ({"for_": "sockets", "since": "1"}, "since: does not apply to sockets, which"),
    ],
    ids=str,
)
def test_a_query_without_a_meaning_is_refused(query: dict[str, str], words: str):
    assert refusal(**query).startswith(words)


@pytest.mark.parametrize(("text", "ms"), [("", 5_000), ("0", 0), ("60000", 60_000)])
def test_a_timeout_is_in_ms_and_at_most_a_minute(text: str, ms: int):
    assert ms == parse_timeout(text)


@pytest.mark.parametrize("text", ["60001", "-1", "5s", "1e3", "9" * 30])
def test_an_invalid_timeout_is_refused(text: str):
    with pytest.raises(BadRequest, match="timeout: "):
        parse_timeout(text)


def test_counts_are_summed_over_all_values():
    condition = condition_of(SCOPE | {"for": "poll", "count": "1", "sum": "1", "value": "-2=1,5=1"})

    found = condition.values(Measured({"-2": 3, "0": 2}))

    assert {"count": 5, "sum": -6, "value -2": 3, "value 5": 0} == found


@pytest.mark.parametrize(
    ("key", "concerns"),
    [
        (Key("poll", "ext", "lunch", "777"), True),
        (Key("poll", "ext", "lunch", "888"), False),
        (Key("poll", "ext", "lunch", ""), False),
        (Key("poll", "ext", "dinner", "777"), False),
        (Key("poll", "other", "lunch", "777"), False),
    ],
    ids=str,
)
def test_a_change_counts_if_its_id_channel_and_extension_do(key: Key, concerns: bool):
    assert concerns is condition_of(SCOPE | {"for": "poll", "id": "lunch"}).concerns(key)


@pytest.mark.parametrize(
    ("subject", "id", "is_shared"),
    [
        ("poll", "global-x", True),
        ("poll", "globalx", False),
        ("rank", "global-x", True),
        ("rank", "globalx", False),
        ("json_store", "globalx", True),
        ("accumulate", "global-x", False),
        ("broadcast", "global-x", False),
    ],
)
def test_a_change_of_no_channel_counts_in_every_channel_for_global_ids_only(subject: str, id: str, is_shared: bool):
    condition = condition_of(SCOPE | {"for": subject, "id": id})

    assert is_shared is condition.concerns(Key(condition.kind, "ext", id))
