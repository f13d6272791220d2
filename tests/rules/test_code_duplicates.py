"""Duplicates among many codes, compared with a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import EngineError
from emulator.features.codes import duplicates
from emulator.features.codes.duplicates import Duplicates, Place
from support.examples import examples

Pairs = list[tuple[Place, Place]]


def found_in(batches: Iterable[tuple[Place, list[str]]], most: int = 20) -> Pairs:
    finder = Duplicates()
    try:
        for place, codes in batches:
            finder.add(place, codes)
        return [pair for pair in finder.find(most) if pair is not None]
    finally:
        finder.close()


def batches_of(sets: list[list[str]], size: int) -> Iterator[tuple[Place, list[str]]]:
    for number, codes in enumerate(sets):
        for start in range(0, len(codes), size):
            yield (number, start), codes[start : start + size]


def pairs_in(sets: list[list[str]]) -> Pairs:
    first: dict[str, Place] = {}
    places = [((number, at), code) for number, codes in enumerate(sets) for at, code in enumerate(codes)]
    return [(first[code], place) for place, code in places if first.setdefault(code, place) != place]


SETS = st.lists(st.lists(st.text("ab\u00fc", min_size=1, max_size=3), max_size=12), max_size=4)


@settings(deadline=None, max_examples=examples(100))
@given(SETS, st.integers(1, 5))
def test_all_pairs_are_found(sets: list[list[str]], size: int):
    assert pairs_in(sets) == found_in(batches_of(sets, size), most=1_000)


@settings(deadline=None, max_examples=examples(30))
@given(SETS, st.integers(1, 5))
def test_all_pairs_are_found_on_disk(sets: list[list[str]], size: int):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_MAX_BUFFERED", "_MAX_IN_MEMORY", "_STEP"):
            patch.setattr(duplicates, name, 5)
        assert pairs_in(sets) == found_in(batches_of(sets, size), most=1_000)


def test_no_more_pairs_than_asked_for_are_found():
    sets = [["a"] * 50, ["b"] * 50]

    assert pairs_in(sets)[:7] == found_in(batches_of(sets, 9), most=7)


def test_codes_with_equal_hashes_are_not_duplicates(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(duplicates, "hash", lambda code: len(code), raising=False)

    assert [((0, 1), (1, 0))] == found_in(batches_of([["a", "b", "cd"], ["b", "dc"]], 3))


def test_many_equal_codes_are_compared_in_steps():
    finder = Duplicates()
    for start in range(0, 300_000, 10_000):
        finder.add((0, start), ["SAME"] * 10_000)

    found = list(finder.find(3))
    finder.close()

    assert [((0, 0), (0, number)) for number in (1, 2, 3)] == [pair for pair in found if pair]
    assert len(found) > 30


def test_a_full_temporary_folder_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    finder = Duplicates()

    with pytest.raises(EngineError, match="temporary file: No such file or directory"):
        finder.add((0, 0), [f"CODE-{number}" for number in range(200_000)])
    finder.close()
