"""The text of a seed: lines and columns of its fields, and `${NAME}` in its texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.contract.positions import Path, Position, field_positions, path_text
from extcli.tables import replace_variables
from support.examples import examples

SCALARS = st.one_of(st.text(), st.integers(-(1 << 60), 1 << 60), st.booleans(), st.floats(allow_nan=False))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=8
)
DOCUMENTS = st.dictionaries(st.text(), VALUES, max_size=3)


def paths_of(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Every path in a document with its value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = {} if path == () else {path: value}
    for name, member in members:
        found |= paths_of(member, (*path, name))
    return found


def text_at(text: str, position: Position) -> str:
    """The rest of the text from a position on."""
    lines = text.split("\n")
    return "\n".join([lines[position.line - 1][position.column - 1 :], *lines[position.line :]])


@settings(max_examples=examples(60), deadline=None)
@given(DOCUMENTS)
def test_the_position_of_every_json_field_is_found(document: dict[str, Any]):
    text = json.dumps(document, indent=1, ensure_ascii=False)
    positions = field_positions(text)

    assert paths_of(document).keys() == positions.keys()
    for path, position in positions.items():
        name = json.dumps(path[-1], ensure_ascii=False) + ":" if isinstance(path[-1], str) else ""
        assert text_at(text, position).startswith(name)


TOML = """\
# "quoted" = [comment]
version = 1 # first
"a key".inner = 'x # y'  # a dotted key
votes = { U1 = 0, "U.2" = [1,
    2, { last = "]}" }] }

[[polls]]
id = \"\"\"
several = "lines"
\"\"\"
  at = 2026-01-01 00:00:00Z
[polls.votes]
U1 = '''it's'''

[[polls]] # the second
[[polls.parts]]
name = "a \\" b"
[clock.inner]
frozen = true
"""
PLACES = {
    "version": (2, 1),
    '["a key"]': (3, 1),
    '["a key"].inner': (3, 1),
    "votes": (4, 1),
    "votes.U1": (4, 11),
    'votes["U.2"]': (4, 19),
    'votes["U.2"][0]': (4, 28),
    'votes["U.2"][1]': (5, 5),
    'votes["U.2"][2]': (5, 8),
    'votes["U.2"][2].last': (5, 10),
    "polls": (7, 1),
    "polls[0]": (7, 1),
    "polls[0].id": (8, 1),
    "polls[0].at": (11, 3),
    "polls[0].votes": (12, 1),
    "polls[0].votes.U1": (13, 1),
    "polls[1]": (15, 1),
    "polls[1].parts": (16, 1),
    "polls[1].parts[0]": (16, 1),
    "polls[1].parts[0].name": (17, 1),
    "clock": (18, 1),
    "clock.inner": (18, 1),
    "clock.inner.frozen": (19, 1),
}


@pytest.mark.parametrize("line_end", ["\n", "\n\n"])
def test_fields_of_toml_are_at_their_names_headers_or_values(line_end: str):
    text = TOML.replace("\n", line_end)
    factor = len(line_end)

    found = {path_text(path): (line, column) for path, (line, column) in field_positions(text).items()}

    assert {path: ((line - 1) * factor + 1, column) for path, (line, column) in PLACES.items()} == found


ENVIRONMENT = {"A": "x", "B_2": "${A}", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain $ and $A and {A}", "plain $ and $A and {A}"),
        ("<${A}${A}>", "<xx>"),
        ("${EMPTY}", ""),
        ("${B_2}", "${A}"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$${", "${"),
    ],
)
def test_variables_are_replaced_once(text: str, expected: str):
    faults: list[tuple[Path, str]] = []

    assert (expected, []) == (
        replace_variables(text, ENVIRONMENT, lambda path, fault: faults.append((path, fault))),
        faults,
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("${C}", "the variable C is not set"),
        *((each, "${ must be followed by a name and }; write $${ for the text ${") for each in ("${", "${A", "${1}")),
    ],
)
def test_an_unset_or_malformed_variable_is_reported_with_its_field(text: str, fault: str):
    faults: list[tuple[Path, str]] = []

    replace_variables({"a": ["fine", text]}, ENVIRONMENT, lambda path, fault: faults.append((path, fault)))

    assert [(("a", 1), fault)] == faults
