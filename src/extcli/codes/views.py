"""How sets and codes look. A table masks codes, since people share screens; formats for programs show them in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import table_of

if TYPE_CHECKING:
    from rich.console import RenderableType

Record = dict[str, Any]

_VISIBLE = 4
_COUNTS = {"distributed": "handed out", "left": "left"}
_FACTS = ("index", "name", "codes", "longest", "duplicates", "in_earlier_sets")


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


def distributed(names: Mapping[int, str]) -> View:
    """Return the view of how many codes each of the ended sets, given by name, had handed out."""

    def records(document: Any) -> list[Record]:
        counts = document["distributed"] or []
        # The sets may have changed after their names were read.
        known: Sequence[tuple[object, str]] = (
            sorted(names.items()) if len(counts) == len(names) else [("", "")] * len(counts)
        )
        return [
            {"index": index, "name": name, "distributed": count}
            for (index, name), count in zip(known, counts, strict=True)
        ]

    return _listing(records, "index", "name", "handed out", empty="no sets")


def redeemed(*, reveal: bool) -> View:
    """Return the view of all codes that a user has redeemed."""
    return _listing(
        lambda document: [
            {"index": index, "code": str(code)}
            for index, codes in enumerate(document["redeemed"] or [])
            for code in codes or []
        ],
        "index",
        "code",
        empty="nothing redeemed yet",
        text=visible if reveal else masked,
    )


def codes_of(document: Any) -> list[str]:
    """Return the code in the answer to a redemption, or an empty list."""
    code = document.get("code") if isinstance(document, dict) else None
    return [str(code)] if code else []


def redemption(*, reveal: bool) -> View:
    """Return the view of a redemption: the code, or nothing."""
    return View(
        table=lambda document: "\n".join(map(visible if reveal else masked, codes_of(document))),
        rows=lambda document: [(field(code),) for code in codes_of(document)],
    )


def _listing(
    records: Callable[[Any], list[Record]],
    *headings: str,
    empty: str,
    text: Callable[[str], str] = visible,
    in_table: Callable[[Record], bool] = lambda _: True,
) -> View:
    """Return the view of a list of records, one column for each member; `text` makes text safe for the table."""

    def table(document: Any) -> RenderableType:
        texts = [at for at, heading in enumerate(headings) if heading in ("name", "code")]
        numbers = [at for at in range(len(headings)) if at not in texts]
        shown = table_of(*headings, right=numbers, folded=texts)
        for record in filter(in_table, records(document)):
            shown.add_row(*(text(value) if isinstance(value, str) else f"{value:,}" for value in record.values()))
        return shown if shown.row_count else empty

    return View(
        table=table,
        rows=lambda document: [[field(value) for value in record.values()] for record in records(document)],
        items=records,
    )


def _sets(document: Mapping[str, Any]) -> View:
    names = names_by_index(document)
    counts = {each: dict(zip(names, document[each], strict=True)) for each in _COUNTS if each in document}

    def records(_: Any) -> list[Record]:
        return [
            {"index": index, "name": name, **{each: numbers[index] for each, numbers in counts.items()}}
            for index, name in sorted(names.items())
        ]

    return _listing(records, "index", "name", *(_COUNTS[each] for each in counts), empty="no sets")


SETS = View(
    table=lambda document: _sets(document).table(document),
    rows=lambda document: _sets(document).rows(document),
    items=lambda document: _sets(document).items(document),
)
"""The active sets. Another deployment may not count their codes."""

ELIGIBILITY = _listing(
    lambda document: [{"index": index, "eligible": count} for index, count in enumerate(document["eligible"] or [])],
    "index",
    "redeemable",
    empty="eligible for nothing",
    in_table=lambda record: bool(record["eligible"]),
)


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
