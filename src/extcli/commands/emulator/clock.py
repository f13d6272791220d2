"""`extcli clock`: the emulator's clock."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli.cli.shared_options import command, noun
from extcli.output import times, views
from extcli.session import Session

app = noun("The emulator's clock, which decides when polls, buffers and tokens expire: read it, move it, freeze it.")


@command(app)
def now(session: Session) -> None:
    """Print the time of the clock. Plain output is Unix milliseconds.

    Example: extcli clock now
    """
    session.output.show(session.anonymous_service().read_clock(), views.CLOCK)


@command(app, loses="the clock moves, and data may expire")
def advance(
    session: Session, by: Annotated[str, typer.Argument(metavar="DURATION", help="500ms, 30s, 5m, 1h30m, 8d, 2w.")]
) -> None:
    """Move the clock forward, and print what expired.

    Example: extcli clock advance 8d
    """
    _move(session, advance=times.duration(by))


@command(app, "set", loses="the clock moves, and data may expire")
def set_clock(
    session: Session,
    to: Annotated[str, typer.Argument(metavar="TIME", help=f"{times.FORMS}, by the emulator's clock.")],
) -> None:
    """Set the clock, and print what expired.

    Example: extcli clock set 2026-12-24T18:00:00Z
    """
    _move(session, set=times.instant(to, session.now))


@command(app, loses="the clock leaves real time")
def freeze(session: Session, off: Annotated[bool, typer.Option("--off", help="Let the clock run on.")] = False) -> None:
    """Stop the clock.

    Example: extcli clock freeze && extcli clock freeze --off
    """
    _move(session, freeze=not off)


def _move(session: Session, **change: int | bool) -> None:
    session.output.show(session.anonymous_service().move_clock(change), views.MOVED_CLOCK)
