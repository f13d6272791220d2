"""A text that is not JSON: where it stops being JSON, and what to write instead."""

from __future__ import annotations

import json

import pytest

from extcli.reading.shapes import not_json

QUOTES = "put single quotes around the JSON, so that your shell keeps its double quotes: '{\"key\": 1}'"
TEXTS = {
    "hello": ("a text needs double quotes", "for your shell: '\"hello\"'"),
    '{"round": 4': ('} is missing at the end (column 12, after {"round": 4)', "add }"),
    '[{"a": 1': ('}] is missing at the end (column 9, after [{"a": 1)', "add }]"),
    "[1,": ("] is missing at the end (column 4, after [1,)", "add ]"),
    "{round: 4}": ("this needs double quotes (column 2, after {)", QUOTES),
    '{"a": red}': ('this needs double quotes (column 7, after {"a":)', QUOTES),
    "{'a': 1}": ("JSON has double quotes, not single ones (column 2, after {)", QUOTES),
    '{"a" 1}': ('a colon is missing (column 6, after {"a")', None),
    '{"a": 1 "b": 2}': ('a comma is missing (column 9, after {"a": 1)', None),
    '{"a": 1} x': ('the JSON has ended, and more follows (column 10, after {"a": 1})', None),
    '{"a": "x}': ('this text has no closing double quote (column 7, after {"a":)', None),
    '{"a": 1,\n "b": }': ('a value is missing, or has no double quotes (line 2, column 7, after "b":)', None),
    "": ("it is empty", None),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_is_not_json_is_located_and_mended(text: str):
    with pytest.raises(json.JSONDecodeError) as raised:
        json.loads(text)

    problem, advice = TEXTS[text]
    error = not_json("DATA", raised.value)
    assert ["extcli: DATA is not JSON", f"  {problem}", *([f"  {advice}"] if advice else [])] == error.lines()


@pytest.mark.parametrize("text", ['{"a": 1,}', "[1, ]", "[1,\n]"])
def test_a_comma_before_a_closing_bracket_is_named(text: str):
    with pytest.raises(json.JSONDecodeError) as raised:
        json.loads(text)

    error = not_json("DATA", raised.value)
    assert (True, "remove the comma") == (
        error.why.startswith("no comma may stand before a closing bracket"),
        error.fix,
    )
