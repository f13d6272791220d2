"""Sets of codes: opens their files, and validates their codes without loading a set into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

from emulator.contract.limits import MAX_CODE_LENGTH, MAX_CODES, MAX_SET_NAME_LENGTH, MAX_SETS
from extcli.codes.entries import Batch, Entries, FileFormat, Unreadable
from extcli.codes.streamed_body import json_items
from extcli.errors import UsageError
from extcli.output import progress
from extcli.output.printer import Output
from extcli.output.sanitize import visible

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
        if not name or len(name) > MAX_SET_NAME_LENGTH or not name.isprintable():
            raise UsageError(
                f"invalid set name {visible(name)!r}", fix=f"use 1 to {MAX_SET_NAME_LENGTH} printable characters"
            )
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


_BITS = 29
"""Two to this power is the number of bits: 64 MiB. Of ten million codes, two in a hundred share one."""
_MASK = (1 << _BITS) - 1


class SeenHashes:
    """The hashes of all codes so far, a bit for each, and those that came again. A hash may be of several codes."""

    def __init__(self) -> None:
        self._bits = bytearray(1 << (_BITS - 3))
        self.repeated: set[int] = set()

    def add(self, items: Iterable[str]) -> None:
        """Add valid codes."""
        bits, repeated = self._bits, self.repeated
        for each in items:
            number = hash(each) & _MASK
            at, bit = number >> 3, 1 << (number & 7)
            if bits[at] & bit:
                repeated.add(number)
            else:
                bits[at] |= bit


_NAMED = 20


class ValidationErrors:
    """Collects errors. They quote no entry: a code may be worth money."""

    def __init__(self) -> None:
        self.count = 0
        self._named: list[str] = []

    @property
    def names_left(self) -> int:
        """How many more errors will be named."""
        return _NAMED - len(self._named)

    def add(self, place: str, fault: str) -> None:
        """Count an error, and name it if it is among the first."""
        self.count += 1
        if self.names_left:
            self._named.append(f"{place}: {fault}")

    def raise_any(self) -> None:
        """Raise `UsageError` if there are errors. Nothing was sent so far."""
        if self.count:
            more = self.count - len(self._named)
            what = f"found {self.count:,} error{'s' * (self.count != 1)}; nothing was sent"
            details = [*self._named, f"and {more:,} more" if more else ""]
            raise UsageError(what, fix="correct them and try again", details=details, facts={"faults": self._named})


def problem_of_entry(item: str | Unreadable, kind: str, longest: int) -> str:
    """Return what is wrong with an entry, or "" if it is valid. `kind` is "a code" or "an id"."""
    if isinstance(item, Unreadable):
        return item.fault
    if not item:
        return "is empty"
    if len(item) > longest:
        return f"has {len(item):,} characters; {kind} has 1 to {longest}"
    if item.isprintable():
        return ""
    is_utf8 = not any("\udc80" <= character <= "\udcff" for character in item)
    return "has unprintable characters" if is_utf8 else "is not UTF-8 text"


def validate(sets: Sequence[CodeSet], output: Output) -> ValidationErrors:
    """Read every code, record the counts on the sets, and return the errors."""
    errors, hashes = ValidationErrors(), SeenHashes()
    with progress.progress_bar(output, "checking", sum(each.entries.size for each in sets)) as done:
        read = 0
        for each in sets:
            for batch in each.entries:
                done(read + each.entries.consumed)
                if not _validate_batch(each, batch, errors, hashes):
                    break
            if not each.count:
                errors.add(each.entries.name, "has no codes")
            read += each.entries.size
    repeated = hashes.repeated
    del hashes  # frees its bits
    if repeated:
        _add_duplicates(sets, repeated, errors)
    return errors


def _validate_batch(code_set: CodeSet, batch: Batch, errors: ValidationErrors, hashes: SeenHashes) -> bool:
    """Validate a batch of a set. Return False once the set has too many codes."""
    space = MAX_CODES - code_set.count
    items = batch.items[:space] if len(batch.items) > space else batch.items
    code_set.count += len(items)
    if not _all_valid(items):
        items = _valid(code_set, batch.numbers, items, errors)
    hashes.add(items)
    if items:
        code_set.longest = max(code_set.longest, max(map(len, items)))
        code_set.encoded_size += len(json_items(items))
    if len(batch.items) > space:
        errors.add(code_set.entries.place(batch.numbers[space]), f"exceeds the limit of {MAX_CODES:,} codes per set")
        return False
    return True


def _all_valid(items: Sequence[Any]) -> bool:
    """Return whether a whole batch is valid: much faster than checking each entry."""
    try:
        return (
            all(map(str.isprintable, items)) and "" not in items and max(map(len, items), default=0) <= MAX_CODE_LENGTH
        )
    except TypeError:
        return False  # one of them is `Unreadable`


def _valid(code_set: CodeSet, numbers: Sequence[int], items: Sequence[Any], errors: ValidationErrors) -> list[str]:
    """Return the valid codes of a batch, and add an error for each invalid one."""
    valid = []
    for number, item in zip(numbers, items, strict=False):
        if fault := problem_of_entry(item, "a code", MAX_CODE_LENGTH):
            errors.add(code_set.entries.place(number), fault)
        else:
            valid.append(item)
    return valid


def _add_duplicates(sets: Sequence[CodeSet], repeated: set[int], errors: ValidationErrors) -> None:
    """Read the codes with a repeated hash again, count the duplicates on the sets, and add an error for each."""
    first: dict[str, tuple[int, str]] = {}
    latest: dict[str, int] = {}
    for number, each in enumerate(sets):
        for batch in each.entries:
            for at, code in zip(batch.numbers, batch.items, strict=True):
                if not isinstance(code, str) or hash(code) & _MASK not in repeated:
                    continue
                place = each.entries.place(at)
                other, other_place = first.setdefault(code, (number, place))
                if code in latest:
                    each.duplicates += latest[code] == number
                    each.in_earlier_sets += latest[code] != number
                    of_set = f" of set {sets[other].name!r}" if other != number else ""
                    errors.add(place, f"is the same code as {other_place}{of_set}")
                latest[code] = number
