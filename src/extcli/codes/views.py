"""How sets and codes look. A table masks codes, since people share screens; formats for programs show them in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import table_of

if TYPE_CHECKING:
    from rich.console import RenderableType

_VISIBLE = 4


def masked(code: str) -> str:
    """Return the code with only its ends visible: at most two characters each, and at most a third in all."""
    shown = min(_VISIBLE, len(code) // 3)
    start, end = shown - shown // 2, shown // 2
    return visible(code[:start]) + "•" * (len(code) - shown) + visible(code[len(code) - end :])


def names_by_index(document: Mapping[str, Any]) -> dict[int, str]:
    """Return the names of the sets; a deployment that omits `indices` means positions."""
    names = document["names"] or []
    indices = document.get("indices") or range(len(names))
    return dict(zip(indices, names, strict=True))


def _set_rows(document: Any) -> list[tuple[int, str]]:
    return sorted(names_by_index(document).items())


def _set_table(document: Any) -> RenderableType:
    table = table_of("index", "name", right=(0,), folded=(1,))
    for index, name in _set_rows(document):
        table.add_row(str(index), visible(name))
    return table if table.row_count else "no sets"


SETS = View(
    table=_set_table,
    rows=lambda document: [(field(index), field(name)) for index, name in _set_rows(document)],
    items=lambda document: [{"index": index, "name": name} for index, name in _set_rows(document)],
)


def distributed(names: Mapping[int, str]) -> View:
    """Return the view of how many codes each of the ended sets, given by name, had handed out."""

    def rows(document: Any) -> list[tuple[object, str, int]]:
        counts = document["distributed"] or []
        # The sets may have changed after their names were read.
        known: Sequence[tuple[object, str]] = (
            sorted(names.items()) if len(counts) == len(names) else [("", "")] * len(counts)
        )
        return [(index, name, count) for (index, name), count in zip(known, counts, strict=True)]

    def table(document: Any) -> RenderableType:
        shown = table_of("index", "name", "handed out", right=(0, 2), folded=(1,))
        for index, name, count in rows(document):
            shown.add_row(str(index), visible(name), f"{count:,}")
        return shown if shown.row_count else "no sets"

    return View(
        table=table,
        rows=lambda document: [[field(cell) for cell in row] for row in rows(document)],
        items=lambda document: [
            {"index": index, "name": name, "distributed": count} for index, name, count in rows(document)
        ],
    )


_FACTS = ("index", "name", "codes", "longest", "duplicates", "in_earlier_sets")


def _checked_table(sets: Sequence[Mapping[str, Any]]) -> RenderableType:
    replaces = any("replaces" in each for each in sets)
    columns = ["index", "name", "codes", "longest", "duplicates", "in earlier sets", *["replaces"] * replaces]
    table = table_of(*columns, right=(0, 2, 3, 4, 5), folded=(1, 6))
    for each in sets:
        counts = [f"{each[name]:,}" for name in _FACTS[2:]]
        last = [visible(each.get("replaces") or "")] * replaces
        table.add_row(str(each["index"]), visible(each["name"]), *counts, *last)
    return table


CHECKED_SETS = View(
    table=_checked_table,
    rows=lambda sets: [[field("" if value is None else value) for value in each.values()] for each in sets],
    items=lambda sets: sets,
)
"""The counts of checked sets and, for a dry run, the names of the sets that they replace."""


def _eligible(document: Any) -> list[tuple[int, int]]:
    return list(enumerate(document["eligible"] or []))


def _eligibility_table(document: Any) -> RenderableType:
    table = table_of("index", "redeemable", right=(0, 1))
    for index, count in _eligible(document):
        if count:
            table.add_row(str(index), f"{count:,}")
    return table if table.row_count else "eligible for nothing"


ELIGIBILITY = View(
    table=_eligibility_table,
    rows=lambda document: [(field(index), field(count)) for index, count in _eligible(document)],
    items=lambda document: [{"index": index, "eligible": count} for index, count in _eligible(document)],
)


def _held(document: Any) -> list[tuple[int, str]]:
    return [(index, str(code)) for index, codes in enumerate(document["redeemed"] or []) for code in codes or []]


def redeemed(*, reveal: bool) -> View:
    """Return the view of all codes that a user has redeemed."""

    def table(document: Any) -> RenderableType:
        shown = table_of("index", "code", right=(0,), folded=(1,))
        for index, code in _held(document):
            shown.add_row(str(index), visible(code) if reveal else masked(code))
        return shown if shown.row_count else "nothing redeemed yet"

    return View(
        table=table,
        rows=lambda document: [(field(index), field(code)) for index, code in _held(document)],
        items=lambda document: [{"index": index, "code": code} for index, code in _held(document)],
    )


def codes_of(document: Any) -> list[str]:
    """Return the code in the answer to a redemption, or an empty list."""
    code = document.get("code") if isinstance(document, dict) else None
    return [str(code)] if code else []


def redemption(*, reveal: bool) -> View:
    """Return the view of a redemption: the code, or nothing."""
    return View(
        table=lambda document: "\n".join(visible(code) if reveal else masked(code) for code in codes_of(document)),
        rows=lambda document: [(field(code),) for code in codes_of(document)],
    )
