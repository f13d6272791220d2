"""`--watch`: runs a command that reads again and again, and shows what changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from extcli import clock
from extcli.errors import UsageError
from extcli.output.format import Format
from extcli.session import Session

Watch = Annotated[
    bool,
    typer.Option("--watch", help="Show each change until interrupted or, if given, --timeout; as JSON in a pipe."),
]
_SECONDS = 0.5
"""Between two reads. A service may refuse a caller who reads more often."""


def repeat(session: Session, show: Callable[[], None], *, watch: bool) -> None:
    """Show a result once, or again after each change."""
    if not watch:
        show()
        return
    if session.output.format is Format.ENV:
        raise UsageError("-o env cannot be watched", fix="leave out --watch")
    from extcli.output.progress import watching

    seconds = session.resolver.timeout() if session.resolver.flags.timeout else float("inf")
    deadline = clock.elapsed() + seconds
    with watching(session.output):
        show()
        while clock.elapsed() < deadline:
            clock.sleep(_SECONDS)
            show()
