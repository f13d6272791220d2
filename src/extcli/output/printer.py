"""Printing: data to standard output, everything else to standard error. Knows formats, not what is printed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from extcli.errors import Answered, CliError, UnexpectedAnswer
from extcli.output.format import Format
from extcli.output.sanitize import compact

if TYPE_CHECKING:
    from rich.console import RenderableType


class Answer(Answered, Protocol):
    """An answer of the service, as printing reads it."""

    @property
    def content(self) -> bytes: ...
    def iter_bytes(self) -> Iterator[bytes]: ...


SHAPE_ERRORS = (KeyError, IndexError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True, slots=True)
class View:
    """How one kind of result looks: each function takes the decoded answer (of a stream: its items)."""

    table: Callable[[Any], RenderableType]
    """For people on a terminal."""
    rows: Callable[[Any], Iterable[Sequence[str]]]
    """For `plain`: fields in a fixed order, made safe by `text.field` or `text.json_text`."""
    items: Callable[[Any], Iterable[object]] = lambda document: [document]
    """For `jsonl`."""


class Output:
    """Where a command's results and remarks go."""

    def __init__(self, chosen: Format, *, quiet: bool = False, verbose: bool = False) -> None:
        self.format = chosen
        self.quiet = quiet
        self._verbose = verbose

    def show(self, answer: Answer, view: View) -> None:
        """An answer of the service; as `json` byte for byte its body, once it is known to be JSON."""
        if self.format is Format.JSON:
            if not _is_json(answer.content):
                raise UnexpectedAnswer(answer)
            self.body([answer.content])
        else:
            with _expected(answer):
                self._print(json.loads(answer.content), view)

    def show_stream(self, answer: Answer, items_at: str, view: View) -> None:
        """An answer that is read as it comes; `items_at` says where its items are, as ijson spells it."""
        if self.format is Format.JSON:
            self.body(_begun_as_json(answer))
            return
        import ijson  # type: ignore[import-untyped]

        with _expected(answer, ijson.JSONError):
            self._print(ijson.items(ijson.from_iter(answer.iter_bytes()), items_at), view)

    def show_value(self, value: Any, view: View) -> None:
        """Something this program worked out itself."""
        if self.format is Format.JSON:
            self.line(json.dumps(value, ensure_ascii=False))
        else:
            self._print(value, view)

    def body(self, chunks: Iterable[bytes]) -> None:
        """Bytes as they are, with a line's end behind them if they have none."""
        last = b"\n"
        for chunk in chunks:
            _write(chunk)
            last = chunk or last
        if not last.endswith(b"\n"):
            _write(b"\n")

    def line(self, text: str) -> None:
        """One line of data."""
        _write(text.encode(errors="backslashreplace") + b"\n")

    def note(self, text: str) -> None:
        """A remark for the person watching; programs are not told."""
        if self.format is Format.TABLE:
            self.report(text)

    def report(self, text: str) -> None:
        """A remark that matters in a log as well."""
        if not self.quiet:
            write_stderr([text])

    def trace(self, text: str) -> None:
        """What went over the wire, for `--verbose`."""
        if self._verbose:
            write_stderr([text])

    def _print(self, document: Any, view: View) -> None:
        if self.format is Format.TABLE:
            _render(view.table(document))
        elif self.format is Format.JSONL:
            for item in view.items(document):
                self.line(compact(item))
        else:
            for row in view.rows(document):
                self.line("\t".join(row))


@contextmanager
def _expected(answer: Answer, *others: type[Exception]) -> Iterator[None]:
    """An answer of another shape than the service's is the service's failure, not a crash here."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (*SHAPE_ERRORS, *others)):
            raise UnexpectedAnswer(answer) from error
        raise


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    except RecursionError:
        # Too deep to be looked at, and begun as JSON.
        return True
    return True


def _begun_as_json(answer: Answer) -> Iterator[bytes]:
    """The body of a stream, too long to be held: what is no object or array shows at its first byte."""
    blank = b""
    chunks = answer.iter_bytes()
    for chunk in chunks:
        blank += chunk
        if start := blank.lstrip()[:1]:
            if start not in b"{[":
                break
            yield blank
            yield from chunks
            return
    raise UnexpectedAnswer(answer)


def write_stderr(lines: Iterable[str]) -> None:
    """Lines to standard error; nobody there to read them is no error."""
    try:
        for line in lines:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        silence(sys.stderr)


def silence(stream: Any) -> None:
    """Send what is still to come into nothing, the flush when Python ends included: the reader has gone."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def print_error(error: CliError, *, as_json: bool) -> None:
    """Say what went wrong, in three lines or as one JSON object."""
    write_stderr([json.dumps(error.as_json(), ensure_ascii=False)] if as_json else error.lines())


def flush() -> None:
    """Let the reader have what was written."""
    with _writable():
        sys.stdout.flush()


def _write(data: bytes) -> None:
    with _writable():
        sys.stdout.buffer.write(data)


@contextmanager
def _writable() -> Iterator[None]:
    """A full disk is not a bug. A reader that has gone is not even a failure, and stays what it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        silence(sys.stdout)
        raise CliError("the output cannot be written", why=error.strerror or "") from None


def _render(renderable: RenderableType) -> None:
    if isinstance(renderable, str):
        _write(renderable.encode(errors="backslashreplace") + b"\n" if renderable else b"")
        return
    from io import TextIOWrapper

    from rich.console import Console

    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal without bars and dashes shows question marks for them.
        sys.stdout.reconfigure(errors="replace")
    Console(highlight=False, markup=False, emoji=False).print(renderable)
