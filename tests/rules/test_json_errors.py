"""A text that is not JSON: where it stops being JSON, and that a shell may have taken its quotes."""

from __future__ import annotations

import json

import pytest

from extcli.reading.shapes import not_json


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("hello", "(line 1, column 1)"),
        ("{round: 4}", "(line 1, column 2, after {)"),
        ('{"a": 1,\n "b": }', '(line 2, column 7, after "b":)'),
    ],
)
def test_a_text_that_is_not_json_is_located(text: str, place: str):
    with pytest.raises(json.JSONDecodeError) as raised:
        json.loads(text)

    error = not_json("DATA", raised.value)
    assert ("DATA is not JSON", True, True) == (error.what, error.why.endswith(place), "single quotes" in error.fix)
