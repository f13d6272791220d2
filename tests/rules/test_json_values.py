"""When two JSON values are equal, for waits, patches, definitions of polls and `extcli conform`."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.contract.json_values import are_equal


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
    assert (expected, expected) == (are_equal(one, other), are_equal(other, one))
