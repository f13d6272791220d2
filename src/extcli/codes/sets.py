"""Sets of codes as the command line names them: parses `NAME=FILE` and opens the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

from extcli.codes.entries import Entries, FileFormat
from extcli.errors import UsageError
from extcli.output.sanitize import visible

MAX_SETS = 10
_MAX_NAME = 256
_EXAMPLE = '--set "Hat"=hats.txt, or --set "Hat"=- for standard input'


@dataclass(slots=True)
class CodeSet:
    """One set. `validation.validate` fills in the counts."""

    name: str
    index: int
    entries: Entries
    count: int = 0
    longest: int = 0
    duplicates: int = 0
    """Codes that occur earlier in this set."""
    in_earlier_sets: int = 0
    """Distinct codes that an earlier set also has."""
    encoded_size: int = 0
    """Bytes of all codes as elements of a JSON array."""

    def facts(self) -> dict[str, Any]:
        """Return what the output shows of the set."""
        return {
            "index": self.index,
            "name": self.name,
            "codes": self.count,
            "longest": self.longest,
            "duplicates": self.duplicates,
            "in_earlier_sets": self.in_earlier_sets,
        }


@contextmanager
def open_sets(
    specs: Sequence[str], indices: Sequence[int] = (), *, form: FileFormat | None, column: str | None
) -> Iterator[list[CodeSet]]:
    """Open the sets of these `NAME=FILE` arguments, and close their files at the end. Raises `UsageError`.

    Without `indices` the sets go to 0, 1, 2 and so on.
    """
    pairs = _parsed(specs)
    indices = indices or range(len(pairs))
    _check_indices(indices, len(pairs))
    with ExitStack() as files:
        yield [
            CodeSet(name, index, files.enter_context(closing(Entries(file, form=form, column=column))))
            for (name, file), index in zip(pairs, indices, strict=True)
        ]


def check_index(index: int) -> None:
    """Raise `UsageError` unless a set can have this index."""
    if not 0 <= index < MAX_SETS:
        raise UsageError(f"invalid set index {index}", fix=f"use 0 to {MAX_SETS - 1}")


def _parsed(specs: Sequence[str]) -> list[tuple[str, str]]:
    """Return the name and the file of each set."""
    if not 1 <= len(specs) <= MAX_SETS:
        raise UsageError(f"{len(specs)} sets were given; the limit is {MAX_SETS}", fix=_EXAMPLE)
    pairs: dict[str, str] = {}
    for spec in specs:
        name, equals, file = spec.partition("=")
        if not equals or not file:
            raise UsageError(f"--set {spec!r} is not NAME=FILE", fix=_EXAMPLE)
        if not name or len(name) > _MAX_NAME or not name.isprintable():
            raise UsageError(f"invalid set name {visible(name)!r}", fix=f"use 1 to {_MAX_NAME} printable characters")
        if name in pairs:
            raise UsageError(f"two sets are named {name!r}", fix="give each set its own name")
        pairs[name] = file
    if list(pairs.values()).count("-") > 1:
        raise UsageError("only one set can come from standard input")
    return list(pairs.items())


def _check_indices(indices: Sequence[int], sets: int) -> None:
    if len(indices) != sets:
        raise UsageError(f"{len(indices)} indices were given for {sets} sets", fix="give one --index for each --set")
    for index in indices:
        check_index(index)
    if len(set(indices)) != len(indices):
        raise UsageError("two sets have the same index", fix="give each set its own --index")
