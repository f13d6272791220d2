"""PINs as people hand them over: read from a terminal or a pipe, never from the command line, and looked at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

from extcli.errors import CliError, Refused, UsageError
from extcli.output.printer import write_stderr
from extcli.session import Session

LIFETIME = 5 * 60_000
"""How long a PIN lives, in ms (ruling T1)."""

_LENGTH = 6
_RETYPINGS = 3
_LONGEST_LINE = 200
_LOOK_ALIKES = {
    "I": "the letter I, or a one",
    "L": "the letter L, or a one",
    "O": "the letter O, or a zero",
    "0": "a zero, or the letter O",
    "1": "a one, or the letter I",
    "5": "a five, or the letter S",
}
"""What no PIN of this service has in it, because people confuse it (ruling T1)."""
_PLACES = ("first", "second", "third", "fourth", "fifth", "sixth")

T = TypeVar("T")


def ask_for_pin(session: Session, argument: str | None, shown_by: str, use: Callable[[str], T]) -> T:
    """What `use` makes of the PIN. On a terminal one that is refused may be typed again, three times."""
    if argument not in (None, "-"):
        raise UsageError(
            "a PIN is not taken from the command line",
            why="process lists and histories show it",
            fix="type it when asked, or pipe it in",
        )
    if sys.__stdin__ is None:
        raise UsageError("standard input is closed", fix="type the PIN when asked, or pipe it in")
    left = _RETYPINGS if sys.stdin.isatty() else 0
    while True:
        try:
            pin = checked_pin(_typed(f"The PIN that {shown_by} shows: "))
            for remark in remarks_on(pin):
                session.output.report(remark)
            return use(pin)
        except CliError as error:
            wrong = isinstance(error, _Unlike) or (isinstance(error, Refused) and error.status == 400)
            if isinstance(error, Refused) and error.status == 400:
                error.fix = f"PINs run out after five minutes: let {shown_by} ask for a new one"
            if not (wrong and left):
                raise
            write_stderr(error.lines())
            left -= 1


class _Unlike(UsageError):
    """What was handed over is no PIN at all."""


def checked_pin(text: str) -> str:
    """Six letters or digits, or `UsageError`, which does not quote them."""
    if not text:
        raise UsageError("no PIN was given", why="standard input is empty", fix="type it when asked, or pipe it in")
    if len(text) != _LENGTH or not (text.isascii() and text.isalnum()):
        raise _Unlike(
            "this is no PIN",
            why=f"a PIN has {_LENGTH} letters and digits, and nothing else",
            fix="of several columns pipe the first, `cut -f1`; `extcli pin request -o plain` prints the PIN alone",
        )
    return text


def remarks_on(pin: str) -> Iterator[str]:
    """What may be a slip. It is sent as typed all the same: other deployments have PINs of all letters and digits."""
    for place, character in zip(_PLACES, pin, strict=False):
        if doubt := _LOOK_ALIKES.get(character.upper()):
            yield f"is the {place} character {doubt}? PINs mostly have neither"
    if pin != pin.upper():
        yield "case matters, and it is sent as typed: the PINs of an emulator are upper case"


def _typed(prompt: str) -> str:
    """The first line of standard input."""
    if sys.stdin.isatty():
        sys.stderr.write(prompt)
        sys.stderr.flush()
    return sys.stdin.buffer.readline(_LONGEST_LINE).decode(errors="replace").strip()
