"""When two JSON values are equal (waits, patches, definitions of polls, `extcli conform`), and where they differ."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.contract.kinds import are_equal_json
from emulator.dashboard.json_text import differences


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        (None, None, True),
        (None, False, False),
        (None, 0, False),
        ("1", 1, False),
        ({"a": 1, "b": [1]}, {"b": [1], "a": 1}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {}, False),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ([1], [1, 2], False),
        ((1, 2), [1, 2], True),
        ((1, 2), [1, True], False),
        ([], None, False),
        ({}, [], False),
    ],
    ids=str,
)
def test_json_values_are_equal_by_value(one: Any, other: Any, expected: bool):
    assert (expected, expected) == (are_equal_json(one, other), are_equal_json(other, one))


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({}, {}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": 2}, [("/a", "1", "2")]),
        ({"a": 1}, {"a": 1.0}, [("/a", "1", "1.0")]),
        ({"a": 1}, {"a": True}, [("/a", "1", "true")]),
        ({"a": None}, {}, [("/a", "null", None)]),
        ({}, {"a/b~c": {"d": 1}}, [("/a~1b~0c", None, '{"d":1}')]),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 3, "d": 2}}}, [("/a/b/c", "1", "3")]),
        ({"a": []}, {"a": {}}, [("/a", "[]", "{}")]),
        ({"a": [1, 2, 3]}, {"a": [0, 1, 2, 3]}, [("/a/0", None, "0")]),
        ({"a": [1, 2, 3]}, {"a": [1, 3]}, [("/a/1", "2", None)]),
        ({"a": [1, 2, 3]}, {"a": [1, 5, 6, 3]}, [("/a/1", "2", "5"), ("/a/2", None, "6")]),
        ({"a": [1, 1]}, {"a": [1, 1, 1]}, [("/a/2", None, "1")]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, [("/a/0/b", "1", "2")]),
        ({"a": "\u202ex"}, {"a": "x"}, [("/a", '"\\u202ex"', '"x"')]),
        ([], 1, [("", "[]", "1")]),
    ],
)
def test_each_place_that_differs_is_listed_with_both_values(before: Any, after: Any, found: list[Any]):
    assert found == list(differences(before, after))


def test_differences_are_in_the_order_of_the_document():
    before, after = {"a": {"x": 1}, "b": 1, "c": 1}, {"a": {"x": 2}, "c": 2, "b": 2, "d": 1}

    assert ["/a/x", "/b", "/c", "/d"] == [each.pointer for each in differences(before, after)]


def test_deep_values_are_compared_without_recursion():
    before, after = 1, 2
    for _ in range(900):
        before, after = [before], [after]

    assert ["/0" * 900] == [each.pointer for each in differences(before, after)]
