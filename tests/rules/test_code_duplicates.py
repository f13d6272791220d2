"""Duplicates among many codes, compared with a dictionary."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.core.errors import EngineError
from emulator.features.codes import uploads
from emulator.features.codes.uploads import CodePlace, Duplicates, repeated_code_pairs
from support.examples import examples

Pairs = list[tuple[CodePlace, CodePlace]]
SETS = st.lists(st.lists(st.text("ab\u00fc", min_size=1, max_size=3), max_size=12), max_size=4)


def repeated_among(batches: Iterable[list[str]]) -> list[set[int]]:
    """Return the repeated hashes that each step finds."""
    finder = Duplicates()
    try:
        for codes in batches:
            finder.add(codes)
        return list(finder.repeated_hashes())
    finally:
        finder.close()


def batches_of(sets: list[list[str]], size: int) -> list[tuple[CodePlace, list[str]]]:
    return [
        ((number, start), codes[start : start + size])
        for number, codes in enumerate(sets)
        for start in range(0, len(codes), size)
    ]


def pairs_found(sets: list[list[str]], size: int) -> Pairs:
    batches, first = batches_of(sets, size), dict[str, CodePlace]()
    repeated = set[int]().union(*repeated_among(codes for _, codes in batches))
    return [pair for place, codes in batches for pair in repeated_code_pairs(codes, place, repeated, first)]


def pairs_in(sets: list[list[str]]) -> Pairs:
    first: dict[str, CodePlace] = {}
    places = [((number, at), code) for number, codes in enumerate(sets) for at, code in enumerate(codes)]
    return [(first[code], place) for place, code in places if first.setdefault(code, place) != place]


@settings(deadline=None, max_examples=examples(40))
@given(SETS, st.integers(1, 5))
def test_all_pairs_are_found(sets: list[list[str]], size: int):
    assert pairs_in(sets) == pairs_found(sets, size)


@settings(deadline=None, max_examples=examples(30))
@given(SETS, st.integers(1, 5))
def test_all_pairs_are_found_on_disk(sets: list[list[str]], size: int):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_MAX_HASHES_IN_MEMORY", "_MAX_FILE_IN_MEMORY"):
            patch.setattr(uploads, name, 5)
        assert pairs_in(sets) == pairs_found(sets, size)


def test_codes_with_equal_hashes_are_not_duplicates(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(uploads, "hash", lambda code: len(code), raising=False)

    assert [((0, 1), (1, 0))] == pairs_found([["a", "b", "cd"], ["b", "dc"]], 3)


def test_a_full_temporary_folder_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))

    with pytest.raises(EngineError, match="temporary file: No such file or directory"):
        repeated_among([[f"CODE-{number}" for number in range(200_000)]])
