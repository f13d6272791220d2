"""`PUT /_emulator/seed` and `extcli seed check` find the same problems in the same document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.control.seeds import read_seed
from emulator.core.errors import BadRequest
from extcli.seeds import read
from extcli.tables import InvalidFile
from features.test_seeds import EVERYTHING
from support.examples import examples
from support.seeds import PLACE

OTHERS = [None, True, "", "x", "\n", "x" * 65, "é" * 513, "global-", -100, 0, 1_025, 1.5, 10**30]
OTHERS += ["2026-12-24T18:00:00", "1969-12-31T23:59:59Z", "viewer_state", "channel_state"]
OTHERS += [[], {}, ["A", "B"], [1, 2, 1], {"U1": 1}, {"": 1}, {"a b": [1] * 1_025}, [{"id": "lunch"}] * 2]


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A seed with something of every kind, in which one member has another value, is unknown or is missing."""
    document: Any = json.loads(json.dumps(PLACE | EVERYTHING))
    table, name = document, draw(st.sampled_from(sorted(EVERYTHING)))
    while isinstance(table[name], dict | list) and table[name] and draw(st.integers(0, 3)):
        table = table[name]
        name = draw(st.sampled_from(list(table) if isinstance(table, dict) else range(len(table))))
    if draw(st.booleans()):
        del table[name]
    else:
        is_unknown = isinstance(table, dict) and draw(st.booleans())
        table["colour" if is_unknown else name] = draw(st.sampled_from(OTHERS))
    return dict(document)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("seeds") / "seed.json"


def fields_of(problems: list[str]) -> set[str]:
    """The fields that problems name, without missing codes: a file may name a file of codes instead."""
    return {each.partition(": ")[0] for each in problems} - {f"codes[{number}].codes" for number in range(3)}


@settings(max_examples=examples(300), deadline=None)
@given(document=documents())
def test_the_service_and_the_check_of_a_file_find_the_same_problems(file: Path, document: dict[str, Any]):
    file.write_text(json.dumps(document))
    by_service, by_check = list[str](), list[str]()

    try:
        read_seed(file.read_bytes())
    except BadRequest as error:
        by_service = error.details
    try:
        read(file, {})
    except InvalidFile as error:
        by_check = [fault.split(" ", 1)[1] for fault in error.details]

    assert fields_of(by_service) == fields_of(by_check)
