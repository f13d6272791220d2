"""Asks before something is lost that cannot be brought back."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from extcli.errors import CliError, Misused
from extcli.output import complain


class Withheld(CliError):
    """Somebody was asked, and said no."""

    exit_code = 130


def ask(losses: Sequence[str], question: str) -> None:
    """Show what would be lost and ask; raises unless the answer is yes. Without a terminal nobody can answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Misused(
            "this needs a yes, and there is no terminal to ask at",
            why="; ".join(losses),
            fix="use --yes if that is what you want",
        )
    complain(losses)
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.buffer.readline(200).decode(errors="replace").strip().lower()
    if answer not in ("y", "yes"):
        raise Withheld("nothing was changed")
