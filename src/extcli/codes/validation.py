"""Validates entries: counts every error and names the first twenty by place and rule. Never quotes an entry."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from extcli.codes.duplicates import Duplicates, Location, compare
from extcli.codes.formats import Batch, Unreadable
from extcli.codes.sets import CodeSet
from extcli.codes.streamed_body import json_items
from extcli.errors import UsageError
from extcli.output import progress
from extcli.output.printer import Output

_MAX_CODES = 999_999
_MAX_CODE = 63
_NAMED = 20


class InvalidEntries(UsageError):
    """Files with invalid entries. Raised before anything is sent."""

    def __init__(self, count: int, named: list[str], fix: str, *, sends: bool) -> None:
        outcome = "; nothing was sent" if sends else ""
        super().__init__(f"found {count:,} error{'s' * (count != 1)}{outcome}", fix=fix)
        self._more = count - len(named)
        self._named = named

    def lines(self) -> list[str]:
        more = [f"  and {self._more:,} more"] if self._more else []
        first, *fix = super().lines()
        return [first, *(f"  {fault}" for fault in self._named), *more, *fix]

    def as_json(self) -> dict[str, Any]:
        document = super().as_json()
        document["error"]["faults"] = self._named
        return document


class ValidationErrors:
    """Collects errors. They quote no entry: a code may be worth money."""

    def __init__(self) -> None:
        self.count = 0
        self.fix = "correct them and try again"
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

    def raise_any(self, *, sends: bool = True) -> None:
        """Raise `InvalidEntries` if there are errors; `sends` is whether the command would send the entries."""
        if self.count:
            raise InvalidEntries(self.count, self._named, self.fix, sends=sends)


def fault_in(item: str | Unreadable, kind: str, longest: int) -> str:
    """Return what is wrong with an entry, or "". `kind` is "a code" or "an id"."""
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
    errors, duplicates = ValidationErrors(), Duplicates()
    with progress.shown(output, "checking", sum(each.entries.size for each in sets)) as done:
        read = 0
        for each in sets:
            for batch in each.entries:
                done(read + each.entries.consumed)
                if not _take(each, batch, errors, duplicates):
                    break
            if not each.count:
                errors.add(each.entries.name, "has no codes")
            duplicates.end_source()
            read += each.entries.size
        counts, candidates = duplicates.finish()
        for each, count in zip(sets, counts, strict=True):
            each.duplicates, each.in_earlier_sets = count
        if candidates:
            _add_duplicates(sets, candidates, errors)
    return errors


def _take(code_set: CodeSet, batch: Batch, errors: ValidationErrors, duplicates: Duplicates) -> bool:
    """Validate a batch of a set. Returns false once the set has too many codes."""
    space = _MAX_CODES - code_set.count
    items = batch.items[:space] if len(batch.items) > space else batch.items
    code_set.count += len(items)
    if not _all_valid(items):
        items = _valid(code_set, batch.numbers, items, errors)
    duplicates.add(items)
    if items:
        code_set.longest = max(code_set.longest, max(map(len, items)))
        code_set.encoded_size += len(json_items(items))
    if len(batch.items) > space:
        errors.add(code_set.entries.place(batch.numbers[space]), f"exceeds the limit of {_MAX_CODES:,} codes per set")
        return False
    return True


def _all_valid(items: Sequence[Any]) -> bool:
    """Check a batch at once, which is much faster than one by one."""
    try:
        return all(map(str.isprintable, items)) and "" not in items and max(map(len, items), default=0) <= _MAX_CODE
    except TypeError:
        return False  # one of them is `Unreadable`


def _valid(code_set: CodeSet, numbers: Sequence[int], items: Sequence[Any], errors: ValidationErrors) -> list[str]:
    """Return the valid codes, and add the errors of the others."""
    valid = []
    for number, item in zip(numbers, items, strict=False):
        if fault := fault_in(item, "a code", _MAX_CODE):
            errors.add(code_set.entries.place(number), fault)
        else:
            valid.append(item)
    return valid


def _add_duplicates(sets: Sequence[CodeSet], candidates: array[int], errors: ValidationErrors) -> None:
    """Name the first duplicates, and correct the counts where only the hashes are equal."""
    found, equal_hashes = compare([each.entries for each in sets], candidates, max(errors.names_left, 1))
    for source, _ in equal_hashes:
        if sets[source].in_earlier_sets:
            sets[source].in_earlier_sets -= 1
        else:
            sets[source].duplicates -= 1
    for duplicate in found:
        source, other = duplicate.location[0], duplicate.first[0]
        of_set = f" of set {sets[other].name!r}" if other != source else ""
        errors.add(_place(sets, duplicate.location), f"is the same code as {_place(sets, duplicate.first)}{of_set}")
    errors.count += max(0, sum(each.duplicates + each.in_earlier_sets for each in sets) - len(found))


def _place(sets: Sequence[CodeSet], location: Location) -> str:
    source, number = location
    return sets[source].entries.place(number)
