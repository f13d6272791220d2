"""`${NAME}` in the texts of a seed."""

from __future__ import annotations

import pytest

from emulator.contract.positions import Path
from extcli.tables import replaced

ENVIRONMENT = {"A": "x", "B_2": "${A}", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain $ and $A and {A}", "plain $ and $A and {A}"),
        ("${A}", "x"),
        ("<${A}${A}>", "<xx>"),
        ("${EMPTY}", ""),
        ("${B_2}", "${A}"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$${", "${"),
        ("$${A} ${A}", "${A} x"),
        ("$5", "$5"),
    ],
)
def test_variables_are_replaced_once(text: str, expected: str):
    faults: list[tuple[Path, str]] = []

    assert (expected, []) == (replaced(text, ENVIRONMENT, lambda path, fault: faults.append((path, fault))), faults)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("${C}", "the variable C is not set"),
        ("${", "${ must be followed by a name and }; write $${ for the text ${"),
        ("${}", "${ must be followed by a name and }; write $${ for the text ${"),
        ("${A", "${ must be followed by a name and }; write $${ for the text ${"),
        ("${A-b}", "${ must be followed by a name and }; write $${ for the text ${"),
        ("${1}", "${ must be followed by a name and }; write $${ for the text ${"),
    ],
)
def test_an_unset_or_malformed_variable_is_reported_with_its_field(text: str, fault: str):
    faults: list[tuple[Path, str]] = []

    replaced({"a": ["fine", text]}, ENVIRONMENT, lambda path, fault: faults.append((path, fault)))

    assert [(("a", 1), fault)] == faults


def test_names_of_fields_and_other_values_stay():
    value = {"${A}": [1, 2.5, True, None, "${A}"]}

    assert {"${A}": [1, 2.5, True, None, "x"]} == replaced(value, ENVIRONMENT, lambda path, fault: None)
