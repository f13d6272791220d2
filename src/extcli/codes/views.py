"""How sets and codes are printed. Tables mask codes, because people share screens; other formats show them in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any

from extcli.output.columns import Column, build_table, int_column, listing, thousands
from extcli.output.printer import RenderableType, View
from extcli.output.sanitize import field, visible
from extcli.reading import Json

_MOST_VISIBLE = 4
_INDEX_COLUMN = Column("index", text=lambda index: thousands(index) if index != "" else "", right=True)
_NAME_COLUMN = Column("name")
_COUNT_COLUMNS = (
    int_column("handed out", "distributed", optional=True),
    int_column("left", optional=True),
)


def mask_code(code: str) -> str:
    """Return the code with only its ends visible: at most two characters each, and at most a third in all."""
    shown = min(_MOST_VISIBLE, len(code) // 3)
    start, end = shown - shown // 2, shown // 2
    return visible(code[:start]) + "•" * (len(code) - shown) + visible(code[len(code) - end :])


def names_by_index(document: Json) -> dict[int, str]:
    """Return the names of the sets; a deployment that omits `indices` means positions."""
    names = document["names"] or []
    indices = document.get("indices") or range(len(names))
    return dict(zip(indices, names, strict=True))


def ended_sets(names: Mapping[int, str]) -> View:
    """Return the view of how many codes each of the ended sets, given by name, had handed out."""

    def records(document: Any) -> list[Json]:
        pairs = zip(sorted(names.items()), document["distributed"] or [], strict=False)
        return [{"index": index, "name": name, "distributed": count} for (index, name), count in pairs]

    return listing(records, _INDEX_COLUMN, _NAME_COLUMN, _COUNT_COLUMNS[0], else_shown="no sets")


def redeemed_codes(*, reveal: bool) -> View:
    """Return the view of all codes that a user has redeemed."""

    def records(document: Json) -> list[Json]:
        sets = enumerate(document["redeemed"] or [])
        return [{"index": index, "code": str(code)} for index, codes in sets for code in codes or []]

    shown = visible if reveal else mask_code
    return listing(records, _INDEX_COLUMN, Column("code", text=shown), else_shown="nothing redeemed yet")


def redeemed_code(document: Any) -> list[str]:
    """Return the code in the response to a redemption, or an empty list."""
    code = document.get("code") if isinstance(document, dict) else None
    return [str(code)] if code else []


def redeemed_code_view(*, reveal: bool) -> View:
    """Return the view of a redemption: the code, or nothing."""
    return View(
        table=lambda document: "\n".join(map(visible if reveal else mask_code, redeemed_code(document))),
        rows=lambda document: [(field(code),) for code in redeemed_code(document)],
    )


def _active_set_records(document: Json) -> list[Json]:
    names = names_by_index(document)
    members = {"index": names.keys(), "name": names.values()}
    members |= {each.member: document[each.member] for each in _COUNT_COLUMNS if each.member in document}
    rows = zip(*members.values(), strict=True)
    return sorted((dict(zip(members, row, strict=True)) for row in rows), key=itemgetter("index"))


ACTIVE_SETS = listing(_active_set_records, _INDEX_COLUMN, _NAME_COLUMN, *_COUNT_COLUMNS, else_shown="no sets")
"""The active sets. Another deployment may not count their codes."""


def _eligibility_records(document: Json) -> list[Json]:
    return [{"index": index, "eligible": count} for index, count in enumerate(document["eligible"] or [])]


def _eligibility_table(document: Json) -> RenderableType:
    found = [each for each in _eligibility_records(document) if each["eligible"]]
    return build_table(_ELIGIBILITY_COLUMNS, found) if found else "eligible for nothing"


_ELIGIBILITY_COLUMNS = (_INDEX_COLUMN, int_column("count", "eligible", "redeemable"))
ELIGIBILITY = replace(listing(_eligibility_records, *_ELIGIBILITY_COLUMNS), table=_eligibility_table)

CHECKED_SETS = listing(
    "",
    Column("index", right=True),
    _NAME_COLUMN,
    int_column("codes"),
    int_column("longest"),
    int_column("duplicates"),
    int_column("in earlier sets", "in_earlier_sets"),
    Column("replaces", lambda each: each["replaces"] or "", optional=True),
)
"""The counts of checked sets and, for a dry run, the names of the sets that they replace."""
