"""Talks to the socket line by line: what is typed goes out at once, what arrives is printed at once."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Semaphore, Thread

from extcli.api import envelope
from extcli.api.envelope import Message
from extcli.api.http import timed_out
from extcli.api.websocket import WebSocketClient
from extcli.errors import CliError, Refused, ServerError, UsageError
from extcli.output.printer import Output, flush, write_stderr
from extcli.output.sanitize import json_text

HELP = """\
ACTION [TARGET] [JSON]   a request, like: get state {"state_id": "channel"}
{"action": …}            a frame, sent as it is
help, exit               this, and the end (also Ctrl-D)"""

_MOST_UNANSWERED = 32
_PROMPT = "> "


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: bytes


@dataclass(frozen=True, slots=True)
class _Ended:
    """There is nothing more to send."""


class LinesRefused(CliError):
    """Some requests were refused; each reply says why."""

    exit_code = Refused.exit_code


class Repl:
    """One connection and one standard input, until either ends."""

    def __init__(self, live: WebSocketClient, output: Output) -> None:
        self._live = live
        self._output = output
        self._events: SimpleQueue[_Line | _Ended | Message | CliError] = SimpleQueue()
        self._room = Semaphore(_MOST_UNANSWERED)
        self._is_watched = sys.stdin.isatty()
        self._prompted = False
        self._ended = False
        self._unanswered = 0
        self._answered = 0
        self._refused: list[int] = []
        self._wrong: CliError | None = None
        self._next_id = 1

    def run(self) -> None:
        """Go on until there is no more input and every request is answered.

        On a terminal a refusal is part of the conversation. In a script it is raised at the end, and a line that
        cannot be sent ends it at once.
        """
        for work in (self._read, self._receive):
            Thread(target=work, daemon=True).start()
        self._prompt()
        while self._unanswered or not self._ended:
            event = self._next()
            if isinstance(event, _Line):
                self._take(event)
            elif isinstance(event, _Ended):
                self._ended = True
            elif isinstance(event, Message):
                self._print(event)
            else:
                raise event
            self._prompt()
        if self._prompted:
            write_stderr([""])  # so that what comes after begins on a line of its own
        if self._wrong:
            raise self._wrong
        if self._refused and not self._is_watched:
            raise _refusal(self._refused, self._answered)

    def _next(self) -> _Line | _Ended | Message | CliError:
        """What happens next; too long without an answer is an error, too long without a question is not."""
        try:
            return self._events.get(timeout=self._live.timeout if self._unanswered else None)
        except Empty:
            raise timed_out(self._live.url) from None

    def _take(self, line: _Line) -> None:
        self._prompted = False
        text = line.text.strip()
        if self._ended or not self._send(text, line.number):
            self._room.release()

    def _send(self, text: bytes, number: int) -> bool:
        """Whether something was sent that will be answered."""
        if not text:
            return False
        if text == b"help":
            write_stderr(HELP.splitlines())
            return False
        if text in (b"exit", b"quit"):
            self._ended = True
            return False
        try:
            frame = self._frame(text)
        except UsageError as error:
            if self._is_watched:
                write_stderr(error.lines())
            else:
                error.what = f"line {number}: {error.what}"
                self._wrong, self._ended = error, True
            return False
        try:
            self._live.send(frame)
        except CliError:
            # What arrived before the end is printed first; the end itself is the last that `_receive` brings.
            self._ended = True
        self._unanswered += 1
        return True

    def _frame(self, line: bytes) -> str:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise UsageError("this is not UTF-8 text") from None
        if text.startswith("{"):
            return text
        action, _, rest = text.partition(" ")
        target, _, data = ("", "", rest) if rest.lstrip().startswith("{") else rest.strip().partition(" ")
        self._next_id = self._next_id % (envelope.NO_REQUEST - 1) + 1
        return envelope.request(action, target, _data(data) if data.strip() else None, self._next_id)

    def _print(self, message: Message) -> None:
        if self._prompted:
            sys.stderr.write("\r" + " " * len(_PROMPT) + "\r")
            sys.stderr.flush()
            self._prompted = False
        self._output.line(json_text(message.document))
        flush()
        if message.is_update or not self._unanswered:
            return
        self._unanswered -= 1
        self._answered += 1
        self._room.release()
        if message.faults:
            self._refused.append(envelope.status_of(message))

    def _prompt(self) -> None:
        if self._is_watched and not (self._prompted or self._unanswered or self._ended):
            sys.stderr.write(_PROMPT)
            sys.stderr.flush()
            self._prompted = True

    def _read(self) -> None:
        """In a thread: lines as there is room for more requests without an answer."""
        for number, text in enumerate(_lines(sys.stdin.fileno()), 1):
            self._room.acquire()
            self._events.put(_Line(number, text))
        self._events.put(_Ended())

    def _receive(self) -> None:
        """In a thread: messages until the connection ends."""
        try:
            while message := self._live.receive():
                self._events.put(message)
        except CliError as error:
            self._events.put(error)


def _data(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        how = 'write it like: get state {"state_id": "channel"}'
        raise UsageError("the data is not JSON", why=str(error), fix=how) from None


def _lines(descriptor: int) -> Iterator[bytes]:
    """Lines as soon as they are whole. Not by `sys.stdin`: a thread that still waits would hold its lock at the end."""
    rest = b""
    while chunk := _read_some(descriptor):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the terminal has gone
        return b""


def _refusal(statuses: list[int], answered: int) -> CliError:
    error = LinesRefused(f"{len(statuses):,} of {answered:,} requests were refused", why="their replies say why")
    if all(status >= 500 for status in statuses):
        error.exit_code = ServerError.exit_code
    return error
