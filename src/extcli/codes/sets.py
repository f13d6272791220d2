"""Sets of codes as they are to be uploaded: named, looked at code by code, and counted (Limits, rulings C2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from extcli.codes.duplicates import Duplicates, Place, confirmed
from extcli.codes.entries import Entries
from extcli.codes.formats import Batch, FileFormat, Unreadable
from extcli.codes.streamed_body import joined
from extcli.codes.validation import ValidationErrors
from extcli.errors import UsageError
from extcli.output.sanitize import visible

MOST_SETS = 10
MOST_CODES = 999_999
LONGEST_CODE = 63
_LONGEST_NAME = 256


@dataclass(slots=True)
class CodeSet:
    """A set, and what was found when its codes were looked at."""

    name: str
    index: int
    entries: Entries
    count: int = 0
    longest: int = 0
    repeated: int = 0
    """Codes that came before in this set."""
    shared: int = 0
    """Codes that are in an earlier set as well."""
    size: int = 0
    """Bytes of all its codes in a JSON array."""

    def facts(self) -> dict[str, Any]:
        """What to tell of it."""
        return {
            "index": self.index,
            "name": self.name,
            "codes": self.count,
            "longest": self.longest,
            "duplicates": self.repeated,
            "in_earlier_sets": self.shared,
        }


def open_sets(
    specs: Sequence[str], indices: Sequence[int], *, form: FileFormat | None, column: str | None
) -> list[CodeSet]:
    """The sets of `NAME=FILE` and their indices; raises `UsageError` for what no service can take."""
    if not 1 <= len(specs) <= MOST_SETS:
        raise UsageError(f"{len(specs)} sets are given; 1 to {MOST_SETS} are taken", fix='--set "Hat"=hats.txt')
    pairs = [spec.partition("=") for spec in specs]
    for (name, equals, file), spec in zip(pairs, specs, strict=True):
        if not equals or not file:
            raise UsageError(
                f"{spec!r} is no NAME=FILE", fix='--set "Hat"=hats.txt, or --set "Hat"=- for standard input'
            )
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise UsageError(f"a set's name has 1 to {_LONGEST_NAME} printable characters; {visible(name)!r} has not")
    names, files = [name for name, _, _ in pairs], [file for _, _, file in pairs]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"two sets have the name {min(repeated)!r}", fix="names differ from each other")
    if files.count("-") > 1:
        raise UsageError("standard input can be one set only")
    places = _checked(indices, len(specs)) if indices else list(range(len(specs)))
    sets: list[CodeSet] = []
    try:
        for name, file, index in zip(names, files, places, strict=True):
            sets.append(CodeSet(name, index, Entries(file, form=form, column=column)))
    except BaseException:
        close(sets)
        raise
    return sets


def close(sets: Sequence[CodeSet]) -> None:
    """Give the files back."""
    for each in sets:
        each.entries.close()


def examine(
    sets: Sequence[CodeSet], *, allow_repeats: bool = False, progress: Callable[[int], None] = lambda _: None
) -> ValidationErrors:
    """Look at every code, and note on the sets what was found."""
    faults, repeats = ValidationErrors(), Duplicates()
    done = 0
    for each in sets:
        for batch in each.entries:
            progress(done + each.entries.consumed)
            if not _take(each, batch, faults, repeats):
                break
        if not each.count:
            faults.add(each.entries.name, "has no codes")
        repeats.end_source()
        done += each.entries.size
    counts, suspects = repeats.close()
    for each, count in zip(sets, counts, strict=True):
        each.repeated, each.shared = count
    if suspects:
        _name_repeats(sets, suspects, faults if not allow_repeats else ValidationErrors())
    return faults


def _take(code_set: CodeSet, batch: Batch, faults: ValidationErrors, repeats: Duplicates) -> bool:
    """Look at some codes of a set; false when it has too many of them."""
    room = MOST_CODES - code_set.count
    items = batch.items[:room] if len(batch.items) > room else batch.items
    if not _all_fine(items):
        items = [
            item for number, item in zip(batch.numbers, items, strict=False) if _is_fine(code_set, number, item, faults)
        ]
    repeats.add(items)
    code_set.count += min(len(batch.items), room)
    if items:
        code_set.longest = max(code_set.longest, max(map(len, items)))
        code_set.size += len(joined(items))
    if len(batch.items) > room:
        faults.add(code_set.entries.place(batch.numbers[room]), "is one code too many: a set has fewer than 1,000,000")
        return False
    return True


def _all_fine(items: Sequence[Any]) -> bool:
    try:
        return all(map(str.isprintable, items)) and "" not in items and max(map(len, items), default=0) <= LONGEST_CODE
    except TypeError:
        return False  # one of them is not readable


def _is_fine(code_set: CodeSet, number: int, item: str | Unreadable, faults: ValidationErrors) -> bool:
    rule = _rule_broken_by(item)
    if rule:
        faults.add(code_set.entries.place(number), rule)
    return not rule


def _rule_broken_by(item: str | Unreadable) -> str:
    if isinstance(item, Unreadable):
        return item.rule
    if not item:
        return "is empty"
    if len(item) > LONGEST_CODE:
        return f"has {len(item):,} characters; a code has 1 to {LONGEST_CODE}"
    if item.isprintable():
        return ""
    return not_printable(item)


def not_printable(item: str) -> str:
    """What to say of text that has characters nobody can see."""
    is_utf8 = not any("\udc80" <= character <= "\udcff" for character in item)
    return "has characters that cannot be printed" if is_utf8 else "is not UTF-8 text"


def _name_repeats(sets: Sequence[CodeSet], suspects: Any, faults: ValidationErrors) -> None:
    """Say where the first repeats are, and take back what only looked like one."""
    repeats, false = confirmed([each.entries for each in sets], suspects, max(faults.room, 1))
    for source, _ in false:
        if sets[source].shared:
            sets[source].shared -= 1
        else:
            sets[source].repeated -= 1
    if repeats:
        faults.fix += "; --allow-duplicates takes codes that come twice"
    for repeat in repeats:
        other = repeat.first[0]
        of_set = f" of set {sets[other].name!r}" if other != repeat.place[0] else ""
        faults.add(_place(sets, repeat.place), f"is the same code as {_place(sets, repeat.first)}{of_set}")
    faults.add_unnamed(max(0, sum(each.repeated + each.shared for each in sets) - len(repeats)))


def _place(sets: Sequence[CodeSet], place: Place) -> str:
    source, number = place
    return sets[source].entries.place(number)


def _checked(indices: Sequence[int], sets: int) -> list[int]:
    if len(indices) != sets:
        raise UsageError(f"{len(indices)} indices are given for {sets} sets", fix="repeat --index once for each --set")
    for index in indices:
        if not 0 <= index < MOST_SETS:
            raise UsageError(f"{index} is no index of a set", fix=f"0 to {MOST_SETS - 1}")
    if len(set(indices)) != len(indices):
        raise UsageError("two sets have the same index")
    return list(indices)
