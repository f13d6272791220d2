"""The interactive session: sends each line of input at once, and prints each message when it arrives."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Semaphore, Thread

from extcli import clock
from extcli.api import envelope
from extcli.api.envelope import Message
from extcli.api.failures import timed_out
from extcli.api.websocket import WebSocketClient
from extcli.errors import CliError, ExitCode, UsageError
from extcli.output.format import flush
from extcli.output.printer import Output, write_stderr
from extcli.output.sanitize import json_text
from extcli.reading.shapes import not_json

HELP = """\
ACTION [TARGET] [JSON]   a request, for example: get state {"state_id": "channel"}
{"action": …}            a frame, sent unchanged
help                     show this
exit, Ctrl-D             end"""

_MAX_UNANSWERED = 32
_PROMPT = "> "


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: bytes


class Repl:
    """Connects standard input with one WebSocket, until either ends."""

    def __init__(self, websocket: WebSocketClient, output: Output) -> None:
        self._websocket = websocket
        self._output = output
        self._events: SimpleQueue[_Line | Message | CliError | None] = SimpleQueue()
        """What was typed or received; `None` at the end of the input."""
        self._slots = Semaphore(_MAX_UNANSWERED)
        self._interactive = sys.stdin.isatty()
        self._prompted = False
        self._ended = False
        self._unanswered = 0
        self._answered = 0
        self._refused: list[int] = []
        self._invalid: CliError | None = None
        self._next_id = 1

    def run(self) -> None:
        """Run until the input has ended and every request is answered.

        In a script, refusals are raised at the end, and an invalid line ends the input. On a terminal both are only
        printed.
        """
        for target in (self._read, self._receive):
            Thread(target=target, daemon=True).start()
        self._prompt()
        while self._unanswered or not self._ended:
            event = self._next()
            if isinstance(event, _Line):
                self._handle_line(event)
            elif event is None:
                self._ended = True
            elif isinstance(event, Message):
                self._print(event)
            else:
                raise event
            self._prompt()
        if self._prompted:
            write_stderr([""])  # ends the line of the prompt
        if self._invalid:
            raise self._invalid
        if self._refused and not self._interactive:
            raise _refusal(self._refused, self._answered)

    def _next(self) -> _Line | Message | CliError | None:
        """Return the next line, message or end. Raises `Unreachable` if a reply takes too long."""
        for wait in clock.split_wait(self._websocket.timeout if self._unanswered else None):
            with suppress(Empty):
                return self._events.get(timeout=wait)
        raise timed_out(self._websocket.url)

    def _handle_line(self, line: _Line) -> None:
        self._prompted = False
        text = line.text.strip()
        if self._ended or not self._send(text, line.number):
            self._slots.release()

    def _send(self, text: bytes, number: int) -> bool:
        """Send a line; returns whether it is a request that will be answered."""
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
            if self._interactive:
                write_stderr(error.lines())
            else:
                error.what = f"line {number}: {error.what}"
                self._invalid, self._ended = error, True
            return False
        try:
            self._websocket.send(frame)
        except CliError:
            # `_receive` delivers what arrived before the connection ended, then this error.
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
        self._slots.release()
        if message.errors:
            self._refused.append(envelope.status_of(message))

    def _prompt(self) -> None:
        if self._interactive and not (self._prompted or self._unanswered or self._ended):
            sys.stderr.write(_PROMPT)
            sys.stderr.flush()
            self._prompted = True

    def _read(self) -> None:
        """Read lines in a thread, while fewer than the maximum of requests are unanswered."""
        for number, text in enumerate(_lines(sys.stdin.fileno()), 1):
            self._slots.acquire()
            self._events.put(_Line(number, text))
        self._events.put(None)

    def _receive(self) -> None:
        """Read messages in a thread, until the connection ends."""
        try:
            while message := self._websocket.receive():
                self._events.put(message)
        except CliError as error:
            self._events.put(error)


def _data(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        example = 'for example: get state {"state_id": "channel"}'
        raise not_json("the data", error, fix=example) from None


def _lines(descriptor: int) -> Iterator[bytes]:
    """Yield complete lines. Not from `sys.stdin`, whose lock a waiting thread would still hold when Python exits."""
    rest = b""
    while chunk := _read_some(descriptor):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the terminal is closed
        return b""


def _refusal(statuses: list[int], answered: int) -> CliError:
    """Return the error for the end of a script, of whose requests the service has refused some."""
    error = CliError(f"{len(statuses):,} of {answered:,} requests were refused", why="see their replies")
    failed = all(status >= 500 for status in statuses)
    error.exit_code = ExitCode.SERVICE_FAILED if failed else ExitCode.REFUSED
    return error
