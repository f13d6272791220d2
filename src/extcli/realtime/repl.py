"""The interactive session: sends each line of input at once, and prints each message when it arrives."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import Condition, Thread

from extcli import clock
from extcli.api import websocket
from extcli.api.http import timed_out
from extcli.api.websocket import Message, WebSocketClient
from extcli.errors import CliError, ExitCode, UsageError
from extcli.output.format import flush
from extcli.output.printer import Output, write_stderr
from extcli.output.sanitize import json_text
from extcli.reading import not_json_error

HELP = """\
ACTION [TARGET] [JSON]   a request, for example: get state {"state_id": "channel"}
{"action": …}            a frame, sent unchanged
help                     show this
exit, Ctrl-D             end"""

_MAX_UNANSWERED = 32
_PROMPT = "> "


class Repl:
    """Connects standard input with one WebSocket, until either ends.

    A thread reads lines and sends them, while this one prints what arrives.
    """

    def __init__(self, websocket: WebSocketClient, output: Output) -> None:
        self._websocket = websocket
        self._output = output
        self._interactive = sys.stdin.isatty()
        self._prompted = False
        self._is_over = False
        """Whether the input has ended and every request is answered."""
        self._replied = Condition()
        self._sent = self._answered = 0
        self._sent_at = 0.0
        self._refused: list[int] = []
        self._invalid: CliError | None = None

    def run(self) -> None:
        """Run until the input has ended and every request is answered.

        In a script, refusals are raised at the end, and an invalid line ends the input. On a terminal both are only
        printed.
        """
        # `sys.stdin` has a lock that a waiting thread would still hold when Python exits.
        edits = self._interactive and sys.stdout.isatty()
        with _edited_lines() if edits else nullcontext():
            lines = self._typed_lines() if edits else os.fdopen(sys.stdin.fileno(), "rb", closefd=False)
            Thread(target=self._send_all, args=(lines,), daemon=True).start()
            try:
                while True:
                    self._print(self._next_message())
            except CliError:
                if not self._is_over:
                    raise
        if self._invalid:
            raise self._invalid
        if self._refused and not self._interactive:
            what = f"{len(self._refused):,} of {self._answered:,} requests were refused"
            error = CliError(what, why="see their replies")
            error.exit_code = ExitCode.SERVICE_FAILED if min(self._refused) >= 500 else ExitCode.REFUSED
            raise error

    def _next_message(self) -> Message:
        """Return the next message. Raises `CliError` at the end of the connection, or if a reply takes too long."""
        seconds = self._websocket.timeout
        while (message := self._websocket.receive(seconds)) is None:
            if self._sent > self._answered and clock.elapsed() - self._sent_at >= seconds:
                raise timed_out(self._websocket.url)
        return message

    def _print(self, message: Message) -> None:
        typed = _PROMPT + _typed_so_far() if self._prompted else ""
        sys.stderr.write(f"\r{' ' * len(typed)}\r" if typed else "")
        sys.stderr.flush()
        self._output.line(json_text(message.document))
        flush()
        sys.stderr.write(typed)
        sys.stderr.flush()
        if message.is_update or self._answered == self._sent:
            return
        if message.errors:
            self._refused.append(websocket.status_of(message))
        with self._replied:
            self._answered += 1
            self._replied.notify()

    def _send_all(self, lines: Iterable[bytes]) -> None:
        """Send every line, and close the socket when all are answered."""
        with suppress(OSError):  # the terminal is closed
            for number, line in enumerate(lines, 1):
                self._wait_for_replies(_MAX_UNANSWERED - 1)
                text = line.strip()
                if text in (b"exit", b"quit"):
                    break
                if text == b"help":
                    write_stderr(HELP.splitlines())
                elif text and not self._send(text, number):
                    break
        self._wait_for_replies()
        self._is_over = True
        self._websocket.close()

    def _wait_for_replies(self, but: int = 0) -> None:
        """Wait until all requests are answered, but so many."""
        with self._replied:
            self._replied.wait_for(lambda: self._sent - self._answered <= but)

    def _typed_lines(self) -> Iterator[bytes]:
        """Yield the lines that are typed. The next prompt appears when the last request is answered."""
        with suppress(EOFError, UnicodeError):
            while True:
                self._wait_for_replies()
                self._prompted = True
                line = input(_PROMPT)
                self._prompted = False
                yield line.encode()
        self._prompted = False
        write_stderr([""])  # ends the line of the prompt

    def _send(self, text: bytes, number: int) -> bool:
        """Send a line; return whether the next one may follow."""
        try:
            frame = self._frame_of_line(text)
        except UsageError as error:
            if self._interactive:
                write_stderr(error.lines())
                return True
            error.what = f"line {number}: {error.what}"
            self._invalid = error
            return False
        self._sent += 1
        self._sent_at = clock.elapsed()
        try:
            self._websocket.send(frame)
        except CliError:
            return False  # the other thread gets what arrived before the end, and then the error
        return True

    def _frame_of_line(self, line: bytes) -> str:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise UsageError("this is not UTF-8 text") from None
        if text.startswith("{"):
            return text
        action, _, rest = text.partition(" ")
        target, _, data = ("", "", rest) if rest.lstrip().startswith("{") else rest.strip().partition(" ")
        number = self._sent % (websocket.ID_WITHOUT_REQUEST - 1) + 1
        try:
            return websocket.request(action, target, json.loads(data) if data.strip() else None, number)
        except (ValueError, RecursionError) as error:
            example = 'for example: get state {"state_id": "channel"}'
            raise not_json_error("the data", error, fix=example) from None


@contextmanager
def _edited_lines() -> Iterator[None]:
    """Let `input` edit lines and recall earlier ones. Windows does so itself.

    At the end the terminal is as it was, even if a thread still waits for a line.
    """
    if sys.platform == "win32":
        yield
        return
    import readline  # noqa: F401
    import termios

    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _typed_so_far() -> str:
    """Return what stands behind the prompt."""
    readline = sys.modules.get("readline")
    return str(readline.get_line_buffer()) if readline else ""
