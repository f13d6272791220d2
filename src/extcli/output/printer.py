"""Prints data to standard output, and everything else to standard error, in the chosen format."""

from __future__ import annotations

import json
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from emulator.contract.names import HINT
from extcli import bounded_json
from extcli.errors import CliError, UnexpectedResponse, UsageError
from extcli.output.format import Format, silence
from extcli.output.sanitize import compact, printable, visible
from extcli.reading import shapes, streams
from extcli.reading.shapes import expect_shape

if TYPE_CHECKING:
    from httpx import Response
    from rich.console import RenderableType


_ROW_END = "\r\n"
"""The end of a row for `csv`, which quotes cells that have one of its characters."""


@dataclass(frozen=True, slots=True)
class View:
    """How to print one kind of result. Each function takes the decoded response, or the items of a stream."""

    table: Callable[[Any], RenderableType]
    """For people on a terminal."""
    rows: Callable[[Any], Iterable[Iterable[str]]]
    """For `plain`: fields in a fixed order, as `sanitize.field` returns them. Control characters are escaped later."""
    items: Callable[[Any], Iterable[object]] = lambda document: [document]
    """For `jsonl`."""
    columns: Sequence[str] = ()
    """The names of the fields of plain output, for the help."""
    csv: Callable[[Any], Iterable[Iterable[str]]] | None = None
    """For `csv`: the names of the columns, then the fields. Without it, `columns` and `rows`."""

    def named_rows(self, document: Any) -> Iterator[Iterable[str]]:
        """Yield the names of the columns if it has any, otherwise nothing, then the rows."""
        if self.csv:
            yield from self.csv(document)
            return
        yield self.columns
        yield from self.rows(document)

    def described(self, text: str | None) -> str:
        """Return the help of a command that prints this, where `$columns` stands for the fields of plain output."""
        return (text or "").replace("$columns", f"`{'<TAB>'.join(self.columns)}`")


class Output:
    """Prints a command's results and notes."""

    def __init__(self, chosen: Format, *, quiet: bool = False, verbose: bool = False) -> None:
        self.format = chosen
        self.quiet = quiet
        self.query: Callable[[Any], tuple[Any, View]] | None = None
        """Returns the part to print of a result, with its view; `None` for all of it (`output/query.py`)."""
        self.watcher: Callable[[Any, View], None] | None = None
        """Shows results instead of printing them, with --watch (`output/progress.py`)."""
        self._verbose = verbose
        self._found_nothing = False
        self._columns: list[str] = []
        """The columns that were printed last, as `csv`."""

    def show(self, response: Response, view: View) -> None:
        """Print a response.

        The format `json` prints the body byte for byte; raises `UnexpectedResponse` if it is not JSON.
        """
        if hint := response.headers.get(HINT):
            self.report(f"hint: {hint}")
        document = shapes.document_of(response, object)
        if self.query or self.watcher:
            self.show_value(document, view, of=response)
        elif self.format is Format.JSON:
            self.body([response.content])
        else:
            with expect_shape(response):
                self.print_value(document, view)

    def show_stream(self, response: Response, items_at: str, view: View) -> None:
        """Print a response while reading it.

        `items_at` is the ijson path of its items. With a query, the whole response is read first.
        """
        path = str(response.request.url.path)
        if self.query:
            whole = b"".join(streams.limit_size(response.iter_bytes(), f"the response of {path}"))
            with expect_shape(response):
                document = bounded_json.decoded(whole)
            self.show_value(document, view, of=response)
            return
        if self.format is Format.JSON:
            self.body(_checked_stream(response))
            return
        pieces = response.iter_bytes()
        if self.format is Format.TABLE:
            pieces = streams.limit_size(pieces, f"the response of {path}")
        with expect_shape(response):
            self.print_value(streams.items(pieces, items_at, path), view)

    def show_value(self, value: Any, view: View, *, of: Response | None = None) -> None:
        """Print a value that extcli computed, or the document of the response `of`, which may lack expected fields."""
        if self.query:
            value, view = self.query(value)
            is_empty = value in (None, []) and self.format is not Format.JSON and not self.watcher
            if is_empty and not self._found_nothing:
                self._found_nothing = True
                self.report("--query selects nothing in the response; -o json without it shows what there is")
        with expect_shape(of):
            if self.watcher:
                self.watcher(value, view)
            elif self.format is Format.JSON:
                self.line(json.dumps(value, ensure_ascii=False))
            else:
                self.print_value(value, view)

    def body(self, chunks: Iterable[bytes]) -> None:
        """Print bytes, and a line break if they do not end with one. Only a terminal gets unsafe characters escaped."""
        last = b"\n"
        for chunk in _for_terminal(chunks) if sys.stdout.isatty() else chunks:
            _write(chunk)
            last = chunk or last
        if not last.endswith(b"\n"):
            _write(b"\n")

    def line(self, text: str) -> None:
        """Print one line of data, with unsafe characters escaped."""
        _write(printable(text).encode() + b"\n")

    @property
    def shows_notes(self) -> bool:
        """Whether notes are shown: the output is a table and --quiet is not given."""
        return self.format is Format.TABLE and not self.quiet

    def note(self, text: str) -> None:
        """Print a note to standard error, if the output is a table and --quiet is not given."""
        if self.shows_notes:
            self.report(text)

    def report(self, text: str) -> None:
        """Print a note in any format, unless --quiet."""
        if not self.quiet:
            write_stderr([text])

    def trace(self, text: str) -> None:
        """Print a line of the trace, if --verbose."""
        if self._verbose:
            write_stderr([text])

    def print_value(self, document: Any, view: View) -> None:
        """Print a document, or the items of a stream, in a format other than `json`."""
        if self.format is Format.TABLE:
            _render(view.table(document))
        elif self.format is Format.JSONL:
            for item in view.items(document):
                self.line(compact(item))
        elif self.format is Format.CSV:
            self._print_csv(view.named_rows(document))
        else:
            for row in view.rows(document):
                self.line("\t".join(map(visible, row)))

    def _print_csv(self, rows: Iterator[Iterable[str]]) -> None:
        """Print a list, or a part of it, as CSV. The names of the columns are printed only once.

        Each cell is its value, whatever characters it has; only a terminal gets unsafe ones escaped.
        """
        from csv import writer

        def write(line: str) -> None:
            text = line.removesuffix(_ROW_END) + "\n"
            _write((printable(text) if sys.stdout.isatty() else text).encode(errors="replace"))

        lines = writer(SimpleNamespace(write=write), lineterminator=_ROW_END)
        columns = list(next(rows))
        if columns and columns != self._columns:
            lines.writerow(columns)
        self._columns = columns
        lines.writerows(rows)


def _checked_stream(response: Response) -> Iterator[bytes]:
    """Yield the chunks of a long body, after checking that it begins like a JSON object or array."""
    blank = b""
    chunks = response.iter_bytes()
    for chunk in chunks:
        blank += chunk
        if start := blank.lstrip()[:1]:
            if start not in b"{[":
                break
            yield blank
            yield from chunks
            return
    raise UnexpectedResponse(response)


def _for_terminal(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield chunks of UTF-8 with unsafe characters escaped. Bytes that are not UTF-8 become question marks."""
    decoder = getincrementaldecoder("utf-8")("replace")
    for chunk in chain(chunks, [b""]):
        yield printable(decoder.decode(chunk, final=not chunk)).encode()


def write_stderr(lines: Iterable[str]) -> None:
    """Write lines to standard error, with unsafe characters escaped. A closed reader is not an error.

    What was printed before comes first, even where standard output has a buffer and both are one terminal or file.
    """
    with suppress(OSError, UsageError):  # the output keeps what it cannot write, and the flush at exit reports that
        sys.stdout.flush()
    try:
        for line in lines:
            sys.stderr.write(f"{printable(line)}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        silence(sys.stderr)


def print_error(error: CliError, *, as_json: bool) -> None:
    """Print an error: in up to three lines, or as one JSON object."""
    write_stderr([json.dumps(error.as_json(), ensure_ascii=False)] if as_json else error.lines())


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)


def _render(renderable: RenderableType) -> None:
    if isinstance(renderable, str):
        _write(printable(renderable).encode() + b"\n" if renderable else b"")
        return
    from io import TextIOWrapper

    from rich.console import Console

    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal whose encoding lacks bars and dashes shows question marks. A file gets all, as from other formats.
        sys.stdout.reconfigure(encoding=None if sys.stdout.isatty() else "utf-8", errors="replace")
    Console(highlight=False, markup=False, emoji=False).print(renderable)
