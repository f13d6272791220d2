"""JSON that extcli reads: in pieces, bounded in size and depth; and where a text is not JSON."""

from __future__ import annotations

import json

import pytest

from extcli import reading as streams
from extcli.reading import not_json_error, shape_problem

TEXTS = ["plain", 'a\\\\" [[', "\\\\", '[[[ "quoted" ]]]', "\\", '\\"', "{" * 300, "ü€\U0001f600", "", "]" * 300]
DOCUMENT = {"result": [{"text": text, "nested": [[{"a": [number]}]]} for number, text in enumerate(TEXTS)]}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_pieces_of_any_size_give_the_same_items(size: int):
    text = json.dumps(DOCUMENT, ensure_ascii=False).encode()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]

    assert DOCUMENT["result"] == list(streams.stream_items(pieces, "result.item", "a test"))


@pytest.mark.parametrize("size", [1, 1_000, 1_000_000])
@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000])
def test_deep_nesting_is_refused_before_it_takes_memory(text: bytes, size: int):
    pieces = (text[at : at + size] for at in range(0, len(text), size))

    with pytest.raises(ValueError, match="nested too deeply"):
        list(streams.stream_items(pieces, "result.item", "a test"))


NUMBER = b"1" * 4_301


@pytest.mark.parametrize("size", [1, 4_300, 4_301, 1_000_000])
@pytest.mark.parametrize("text", [b"[" + NUMBER + b"]", b"[-" + NUMBER + b"]", b"[1e" + NUMBER[:20] + b"]"])
def test_a_number_that_python_cannot_convert_is_refused(text: bytes, size: int):
    pieces = (text[at : at + size] for at in range(0, len(text), size))

    with pytest.raises(ValueError, match=r"a number of over 4,300 digits|not JSON"):
        list(streams.stream_items(pieces, "item", "a test"))


@pytest.mark.parametrize("size", [1, 4_300, 1_000_000])
def test_digits_in_a_text_are_not_a_number(size: int):
    text = json.dumps(["1" * 5_000, int("1" * 4_300), "1" * 5_000]).encode()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]

    assert json.loads(text) == list(streams.stream_items(pieces, "item", "a test"))


def test_a_field_may_be_absent_or_null():
    shape = {"options?": ([{"id": str}], None)}

    assert ["", "", ""] == [shape_problem(each, shape) for each in ({}, {"options": None}, {"options": [{"id": "a"}]})]
    assert "options[0].id must be a string, not a whole number" == shape_problem({"options": [{"id": 1}]}, shape)
    assert "options must be an array, not a whole number" == shape_problem({"options": 5}, shape)


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

    error = not_json_error("DATA", raised.value)
    assert ("DATA is not JSON", True, True) == (error.what, error.why.endswith(place), "single quotes" in error.fix)
