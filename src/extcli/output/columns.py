"""Lists of records. Their columns, declared once, make the table, plain output, CSV and the sentence in the help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import itemgetter
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.printer import RenderableType, View
from extcli.output.sanitize import field, visible
from extcli.output.terminal import colored_text

if TYPE_CHECKING:
    from rich.table import Table as Table
else:
    Table = Any

thousands = "{:,}".format
"""Shows a number with separators of thousands."""


def safe_text(value: object) -> str:
    """Return any value as text that is safe to print."""
    return visible(str(value))


def time_text(milliseconds: int | None) -> str:
    """Return an instant in UTC, or nothing for `None` and 0."""
    return times.utc_text(milliseconds) if milliseconds else ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a list."""

    name: str
    """Its name in the help on plain output. A column without a name is only in tables."""
    value: str | Callable[[Any], Any] | None = None
    """The member of a record, or a function of the record; by default the member `name`."""
    heading: str | None = None
    """The heading in tables; by default the name."""
    text: Callable[[Any], RenderableType] = safe_text
    """How tables show the value."""
    plain: Callable[[Any], str] = field
    """How plain output prints the value."""
    right: bool = False
    fills: bool = False
    """Whether a table gives the column the width that is left, for bars."""
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


int_column = partial(Column, text=thousands, right=True)
"""A column of whole numbers."""


def build_table(
    columns: Iterable[Column], records: Iterable[Any], *, leads: Callable[[Any], bool] = lambda record: False
) -> Table:
    """Return the table of these records; one that `leads` is bold. If no column has a heading, it has no such line."""
    from rich.table import Table

    seen = [each for each in columns if each.in_table]
    has_bars = any(each.fills for each in seen)
    made = Table(box=None, pad_edge=False, header_style="heading", expand=has_bars)
    for each in seen:
        heading = each.name if each.heading is None else each.heading
        made.add_column(
            heading,
            justify="right" if each.right else "left",
            overflow="fold",
            no_wrap=each.right,
            min_width=min(len(heading), 8),
            max_width=get_terminal_size().columns // 2 if has_bars and not each.fills else None,
            ratio=1 if each.fills else None,
        )
    made.show_header = any(column.header for column in made.columns)
    for record in records:
        cells = (each.text(each.of(record)) for each in seen)
        made.add_row(*map(_colored_cell, cells), style="leader" if leads(record) else None)
    return made


def _colored_cell(cell: RenderableType) -> RenderableType:
    return colored_text(cell) if isinstance(cell, str) and "`extcli " in cell else cell


def one_item(document: object) -> list[object]:
    """Make jsonl print the document, instead of its records."""
    return [document]


def name_and_count_columns(
    name: str = "kind", heading: str = "", *, text: Callable[[str], str] = visible, plain: Callable[[Any], str] = field
) -> list[Column]:
    """Return the columns of pairs of a name and a number; `text` says how tables show the name."""
    return [
        Column(name, itemgetter(0), heading, text, plain),
        Column("count", itemgetter(1), "", thousands, right=True),
    ]


def name_with_spaces(name: str) -> str:
    """Return the name of a kind with spaces: `json store`."""
    return visible(name.replace("_", " "))


def listing(
    at: str | Callable[[Any], Iterable[Any]],
    *columns: Column,
    else_shown: str | Callable[[Any], RenderableType] = "",
    around: Callable[[Any, Table], RenderableType] = lambda _, table: table,
    items: Callable[[Any], Iterable[object]] | None = None,
    leads: Callable[[Any], bool] = lambda record: False,
) -> View:
    """Return the view of a list: the member `at` of a document, the whole document (`""`), or the result of a function.

    `else_shown` stands for a table without rows; without it, the headings are shown. `around` adds to the table what
    concerns the document as a whole. `items` are the lines of jsonl, if not the records. A record that `leads` is bold.
    """

    def found(document: Any) -> Iterable[Any]:
        return at(document) if callable(at) else document[at] if at else document

    def present(document: Any) -> tuple[list[Column], Iterable[Any]]:
        records = found(document)
        if any(each.optional for each in columns):
            records = list(records)
        return [each for each in columns if not each.optional or any(each.member in one for one in records)], records

    def as_table(document: Any) -> RenderableType:
        made = build_table(*present(document), leads=leads)
        if made.row_count or else_shown == "":
            return around(document, made)
        return else_shown(document) if callable(else_shown) else else_shown

    def as_csv(document: Any) -> Iterator[Iterable[str]]:
        shown, records = present(document)
        fields = [each for each in shown if each.name]
        yield [each.name for each in fields]
        yield from ([each.plain(each.of(record)) for each in fields] for record in records)

    return View(
        table=as_table,
        rows=lambda document: islice(as_csv(document), 1, None),
        items=items or found,
        columns=[each.name for each in columns if each.name],
        csv=as_csv,
    )
