"""`extcli clock`: the emulator's clock."""

from __future__ import annotations

from extcli.cli import argument, command, confirm, flag, noun, option
from extcli.cli.confirm import Yes
from extcli.errors import ExpectationFailed
from extcli.output import times, views
from extcli.output.columns import Column, listing
from extcli.reading.shapes import document_of
from extcli.session import Session

app = noun("The emulator's clock, which decides when polls, buffers and tokens expire: read it, move it, freeze it.")

_COMING = listing(
    lambda document: [{**each, "now": document["now"]} for each in document["next"]],
    Column("Unix ms", "at", "expires (UTC)", text=lambda at: times.shown(at)[:16]),
    Column("", lambda each: times.span(each["at"] - each["now"]), "in"),
    Column("kind"),
    Column("id", folds=True),
    Column("client id", "client_id", folds=True),
    Column("channel", "channel_id", folds=True),
    else_shown="nothing will expire",
    items=lambda document: document["next"],
)
"""What expires next."""


@command(app)
def now(session: Session) -> None:
    """Print the time of the clock. Plain output is Unix milliseconds.

    Example: extcli clock now
    """
    session.output.show(session.control().read_clock(), views.CLOCK)


@command(app, loses="the clock moves, and data may expire", is_control=True)
def advance(
    session: Session, by: str = argument("DURATION", "How far to move the clock: 500ms, 30s, 5m, 1h30m, 8d, 2w.")
) -> None:
    """Move the clock forward, and print what expired.

    Example: extcli clock advance 8d
    """
    _move(session, advance=times.duration(by))


@command(app, "set", loses="the clock moves, and data may expire", is_control=True)
def set_clock(
    session: Session, to: str = argument("TIME", f"{times.FORMS}, by the emulator's clock; or `system`.")
) -> None:
    """Set the clock, and print what expired. `system` sets it back to the system's time.

    \b
    Examples:
      extcli clock set 2026-12-24T18:00:00Z
      extcli clock set -1h
      extcli clock set system
    """
    _move(session, set=to if to == "system" else times.instant(to, session.now))


@command(app)
def freeze(session: Session, off: bool = flag("--off", "Let a stopped clock run again."), yes: Yes = False) -> None:
    """Stop the clock.

    Example: extcli clock freeze && extcli clock freeze --off
    """
    loss = "the clock runs again, and data may expire" if off else "the clock leaves real time"
    confirm.guard(session, loss, yes=yes, is_control=True)
    _move(session, freeze=not off)


@command(app, "next", prints=_COMING)
def show_next(
    session: Session,
    limit: int = option("--limit N", "List at most this many records.", 10, min=1, max=200),
    jump: bool = flag("--jump", "Advance the clock to the first expiry, and print what expired."),
    yes: Yes = False,
) -> None:
    """List the records that expire next, soonest first. Plain output is $columns.

    \b
    Examples:
      extcli clock next
      extcli clock next --jump
    """
    coming = session.control().read_coming_expiries(1 if jump else limit)
    if not jump:
        session.output.show(coming, _COMING)
        return
    confirm.guard(session, "the clock moves, and data may expire", yes=yes, is_control=True)
    document = document_of(coming, {"now": int, "next": [{"at": int}]})
    ends = [each["at"] - document["now"] for each in document["next"]]
    if not ends:
        raise ExpectationFailed("nothing will expire")
    _move(session, advance=max(0, ends[0]))


def _move(session: Session, **change: int | bool | str) -> None:
    session.output.show(session.control().move_clock(change), views.MOVED_CLOCK)
