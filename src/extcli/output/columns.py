"""Lists of records. Their columns, declared once, make the table, plain output, CSV and the sentence in the help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.printer import View
from extcli.output.sanitize import field, visible

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

grouped = "{:,}".format
"""Shows a number with separators of thousands."""


def shown(value: object) -> str:
    """Return any value as text that is safe to print."""
    return visible(str(value))


def instant(milliseconds: int | None) -> str:
    """Return an instant in UTC, or nothing for `None` and 0."""
    return times.shown(milliseconds) if milliseconds else ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a list."""

    name: str
    """Its name in the help on plain output. A column without a name is only in tables."""
    value: str | Callable[[Any], Any] | None = None
    """The member of a record, or a function of the record; by default the member `name`."""
    heading: str | None = None
    """The heading in tables; by default the name."""
    text: Callable[[Any], RenderableType] = visible
    """How tables show the value."""
    plain: Callable[[Any], str] = field
    """How plain output prints the value."""
    right: bool = False
    folds: bool = False
    """Whether a table breaks long texts into lines, instead of cutting them off."""
    optional: bool = False
    """Whether the column is left out if no record has its member."""
    in_table: bool = True
    """Whether tables have the column, besides plain output and CSV."""

    @property
    def member(self) -> str:
        """The member of a record that the column shows."""
        return self.value if isinstance(self.value, str) else self.name

    def of(self, record: Any) -> Any:
        """Return the column's value of a record."""
        return self.value(record) if callable(self.value) else record[self.member]


def table_of(*columns: str, right: Sequence[int] = (), folded: Sequence[int] = ()) -> Table:
    """Return a table without lines. Columns in `folded` wrap; the others are cut off. Those in `right` align right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for index, name in enumerate(columns):
        folds = index in folded
        table.add_column(
            name,
            justify="right" if index in right else "left",
            overflow="fold" if folds else "ellipsis",
            no_wrap=not folds,
            min_width=min(len(name), 8),
        )
    return table


def table(columns: Iterable[Column], records: Iterable[Any], *, numbered: bool = False) -> Table:
    """Return the table of these records, with their numbers from 1 in front if it is `numbered`.

    If no column has a heading, it has no line of headings.
    """
    place = [Column("", heading="", right=True)] if numbered else []
    seen = [*place, *(each for each in columns if each.in_table)]
    made = table_of(
        *(each.name if each.heading is None else each.heading for each in seen),
        right=[at for at, each in enumerate(seen) if each.right],
        folded=[at for at, each in enumerate(seen) if each.folds],
    )
    made.show_header = any(column.header for column in made.columns)
    for number, record in enumerate(records, 1):
        made.add_row(*[str(number)] * numbered, *(each.text(each.of(record)) for each in seen[len(place) :]))
    return made


def whole(document: object) -> list[object]:
    """Make jsonl print the document, instead of its records."""
    return [document]


def name_and_count_columns(
    name: str = "kind", heading: str = "", *, text: Callable[[str], str] = visible, plain: Callable[[Any], str] = field
) -> list[Column]:
    """Return the columns of pairs of a name and a number; `text` says how tables show the name."""
    return [
        Column(name, itemgetter(0), heading, text, plain),
        Column("count", itemgetter(1), "", grouped, right=True),
    ]


def name_with_spaces(name: str) -> str:
    """Return the name of a kind with spaces: `json store`."""
    return visible(name.replace("_", " "))


def listing(
    at: str | Callable[[Any], Iterable[Any]],
    *columns: Column,
    else_shown: str | Callable[[Any], RenderableType] = "",
    plain: Sequence[str] = (),
    numbered: bool = False,
    around: Callable[[Any, Table], RenderableType] = lambda _, table: table,
    items: Callable[[Any], Iterable[object]] | None = None,
) -> View:
    """Return the view of a list: the member `at` of a document, the whole document (`""`), or the result of a function.

    `else_shown` stands for a table without rows; without it, the headings are shown. `plain` names the columns in the
    order of plain output, if that differs. A table that is `numbered` begins with the place of each record. `around`
    adds to the table what concerns the document as a whole. `items` are the lines of jsonl, if not the records.
    """

    def found(document: Any) -> Iterable[Any]:
        return at(document) if callable(at) else document[at] if at else document

    def present(records: Iterable[Any]) -> tuple[list[Column], Iterable[Any]]:
        if not any(each.optional for each in columns):
            return list(columns), records
        records = list(records)
        return [each for each in columns if not each.optional or any(each.member in one for one in records)], records

    def as_table(document: Any) -> RenderableType:
        made = table(*present(found(document)), numbered=numbered)
        if made.row_count or else_shown == "":
            return around(document, made)
        return else_shown(document) if callable(else_shown) else else_shown

    def as_csv(document: Any) -> Iterator[Iterable[str]]:
        shown, records = present(found(document))
        fields = _columns_by_name(shown, plain)
        yield [each.name for each in fields]
        yield from ([each.plain(each.of(record)) for each in fields] for record in records)

    names = [each.name for each in _columns_by_name(columns, plain)]
    return View(
        table=as_table,
        rows=lambda document: islice(as_csv(document), 1, None),
        items=items or found,
        columns=names,
        csv=as_csv,
    )


def _columns_by_name(columns: Iterable[Column], order: Sequence[str]) -> list[Column]:
    """Return the columns of plain output, in this order of names if there is one."""
    return sorted((each for each in columns if each.name), key=lambda each: order.index(each.name) if order else 0)
