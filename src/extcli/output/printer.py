"""Prints data to standard output, and everything else to standard error, in the chosen format."""

from __future__ import annotations

import json
import sys
from codecs import iterdecode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from emulator.contract.names import HINT_HEADER
from extcli import bounded_json
from extcli.errors import CliError, UnexpectedResponse, UsageError
from extcli.output import terminal
from extcli.output.format import Format, discard_rest, flush
from extcli.output.sanitize import compact, printable, visible
from extcli.reading import Response, document_of, expect_shape, limit_size, stream_items

if TYPE_CHECKING:
    from rich.console import RenderableType as RenderableType
else:
    RenderableType = Any  # a command that prints no table does not import rich

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

    def described(self, text: str | None) -> str:
        """Return the help of a command that prints this, where `$columns` stands for the fields of plain output."""
        return (text or "").replace("$columns", f"`{'<TAB>'.join(self.columns)}`")


NOTHING = View(table=lambda _: "", rows=lambda _: [], items=lambda _: [])
"""Prints nothing, for the response `{}`."""


class Output:
    """Prints a command's results and notes."""

    def __init__(self, chosen: Format, *, quiet: bool = False, verbose: bool = False) -> None:
        self.format = chosen
        self.quiet = quiet
        self.query: Callable[[Any], tuple[Any, View]] | None = None
        """Returns the part to print of a result, with its view; `None` for all of it (`views.compile_query`)."""
        self.watcher: Callable[[Any, View], None] | None = None
        """Shows results instead of printing them, with --watch."""
        self._verbose = verbose
        self._last = ""
        """The value that was shown last, with --watch."""
        self._found_nothing = False
        self._columns: list[str] = []
        """The columns that were printed last, as `csv`."""

    def show(self, response: Response, view: View) -> None:
        """Print a response.

        The format `json` prints the body byte for byte; raises `UnexpectedResponse` if it is not JSON.
        """
        if hint := response.headers.get(HINT_HEADER):
            self.report(f"hint: {hint}")
        document = document_of(response, object)
        if self.format is Format.JSON and not (self.query or self.watcher):
            self.body([response.content])
        else:
            self.show_value(document, view, of=response)

    def done(self, response: Response, text: str) -> None:
        """Print a response without content: its body as JSON, or else a note of what was done."""
        self.show(response, NOTHING)
        self.note(text)

    def show_stream(self, response: Response, items_at: str, view: View) -> None:
        """Print a response while reading it.

        `items_at` is the ijson path of its items. With a query, the whole response is read first.
        """
        path = str(response.request.url.path)
        if self.query:
            whole = b"".join(limit_size(response.iter_bytes(), f"the response of {path}"))
            with expect_shape(response):
                document = bounded_json.decoded(whole)
            self.show_value(document, view, of=response)
            return
        if self.format is Format.JSON:
            self.body(_checked_chunks(response))
            return
        pieces = response.iter_bytes()
        if self.format is Format.TABLE:
            pieces = limit_size(pieces, f"the response of {path}")
        with expect_shape(response):
            self.print_value(stream_items(pieces, items_at, path), view)

    def show_value(self, value: Any, view: View, *, of: Response | None = None) -> None:
        """Print a value that extcli computed, or the document of the response `of`, which may lack expected fields."""
        if self.query:
            value, view = self.query(value)
            is_empty = value in (None, []) and self.format is not Format.JSON and not self.watcher
            if is_empty and not self._found_nothing:
                self._found_nothing = True
                self.report("--query selects nothing; -o json without --query shows the whole response")
        with expect_shape(of):
            if self.watcher:
                if (text := compact(value)) != self._last:
                    self.watcher(value, view)
                    flush()
                self._last = text
            elif self.format is Format.JSON:
                self.line(json.dumps(value, ensure_ascii=False))
            else:
                self.print_value(value, view)

    def body(self, chunks: Iterable[bytes]) -> None:
        """Print bytes, and a line break if they do not end with one. Only a terminal gets unsafe characters escaped."""
        last = b"\n"
        if sys.stdout.isatty():
            texts = iterdecode(chunks, "utf-8", "replace")  # bytes that are not UTF-8 become question marks
            chunks = (printable(text).encode() for text in texts)
        for chunk in chunks:
            _write(chunk)
            last = chunk or last
        if not last.endswith(b"\n"):
            _write(b"\n")

    def line(self, text: str) -> None:
        """Print one line of data, with unsafe characters escaped."""
        _write(printable(text).encode() + b"\n")

    def note(self, text: str) -> None:
        """Print a note to standard error, if the output is a table and --quiet is not given."""
        if self.format is Format.TABLE:
            self.report(text)

    def report(self, text: str) -> None:
        """Print a note in any format, unless --quiet."""
        if not self.quiet:
            write_stderr([text], is_prose=self.format is Format.TABLE)

    def trace(self, text: str) -> None:
        """Print a line of the trace, if --verbose."""
        if self._verbose:
            write_stderr([text])

    def print_value(self, document: Any, view: View) -> None:
        """Print a document, or the items of a stream, in a format other than `json`."""
        if self.format is Format.TABLE:
            _print_for_people(view.table(document))
        elif self.format is Format.JSONL:
            for item in view.items(document):
                self.line(compact(item))
        elif self.format is Format.CSV:
            self._print_csv(iter(view.csv(document)) if view.csv else chain([view.columns], view.rows(document)))
        else:
            for row in view.rows(document):
                self.line("\t".join(map(visible, row)))

    @contextmanager
    def watching(self, *, is_chosen: bool) -> Iterator[None]:
        """Show a result that the block prints again only if it has changed; on a terminal in place of the one before.

        Elsewhere each is a line of JSON, unless another format `is_chosen`.
        """
        if self.format is Format.TABLE and sys.stdout.isatty():
            from rich.live import Live

            with Live(console=terminal.styled_console(sys.stdout), auto_refresh=False) as live:
                self.watcher = lambda value, view: live.update(view.table(value), refresh=True)
                yield
        else:
            as_json = not is_chosen or self.format is Format.JSON
            self.watcher = (lambda value, _: self.line(compact(value))) if as_json else self.print_value
            yield

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


def _checked_chunks(response: Response) -> Iterator[bytes]:
    """Yield the chunks of a long body, after checking that it begins like a JSON object or array."""
    chunks = response.iter_bytes()
    first = next(chunks, b"")
    if not first.lstrip().startswith((b"{", b"[")):
        raise UnexpectedResponse(response)
    yield first
    yield from chunks


def write_stderr(lines: Iterable[str], *, is_prose: bool = False) -> None:
    """Write lines to standard error, with unsafe characters escaped. A closed reader is not an error.

    What was printed before comes first, even where standard output has a buffer and both are one terminal or file.
    A terminal gets prose in colors, wrapped at words.
    """
    text = "".join(f"{printable(line)}\n" for line in lines)
    with suppress(OSError, UsageError):  # the output keeps what it cannot write, and the flush at exit reports that
        sys.stdout.flush()
    try:
        if is_prose and sys.stderr.isatty():
            terminal.print_renderable(terminal.Prose(text.removesuffix("\n")), sys.stderr)
        else:
            sys.stderr.write(text)
        sys.stderr.flush()
    except BrokenPipeError:
        discard_rest(sys.stderr)


def print_error(error: CliError, *, as_json: bool) -> None:
    """Print an error: in up to three lines, or as one JSON object."""
    lines = [json.dumps(error.as_json(), ensure_ascii=False)] if as_json else error.lines()
    write_stderr(lines, is_prose=not as_json)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)


def _print_for_people(renderable: RenderableType) -> None:
    if isinstance(renderable, str):
        _write(printable(renderable).encode() + b"\n" if renderable else b"")  # lines to copy: they are not wrapped
        return
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal whose encoding lacks bars and dashes shows question marks. A file gets all, as from other formats.
        sys.stdout.reconfigure(encoding=None if sys.stdout.isatty() else "utf-8", errors="replace")
    terminal.print_renderable(renderable, sys.stdout)
