"""`extcli contents`, `reset` and `clock`: the data of the emulator over all extensions, and its time."""

from __future__ import annotations

from enum import StrEnum
from functools import partial

from emulator.contract.limits import MAX_UNDO_SECONDS
from extcli.cli import argument, command, confirm, flag, noun, option, shared
from extcli.cli.confirm import Yes
from extcli.commands.listing import show_all_pages
from extcli.errors import ExpectationFailed, UsageError, refuse_both
from extcli.output import columns, times, views
from extcli.output.columns import Column, int_column, listing, one_item, time_text
from extcli.reading import document_of
from extcli.session import Session

clock_app = noun("The emulator's clock, which decides when polls, buffers and tokens expire: read, move or freeze it.")


class RecordKind(StrEnum):
    POLLS = "polls"
    RANKINGS = "rankings"
    BUFFERS = "buffers"
    STORES = "stores"
    JSON_STORES = "json-stores"
    CODES = "codes"
    PINS = "pins"
    LINKS = "links"
    TRIVIA = "trivia"
    PURCHASES = "purchases"


RECORDS = listing(
    "rows",
    Column("id"),
    Column("client_id", heading="client id"),
    Column("channel_id", heading="channel"),
    Column("user", lambda each: each.get("user", ""), optional=True),
    Column("name", optional=True),
    int_column("count", optional=True),
    int_column("left", optional=True),
    int_column("size", heading="bytes", optional=True),
    Column("status", optional=True),
    Column("latest", in_table=False),
    Column("expires_at", heading="expires (UTC)", text=time_text),
    else_shown="no such records",
)
"""The records of one kind, with the columns that the kind has."""
COUNTS = listing(
    lambda counts: counts.items(), *columns.name_and_count_columns(text=columns.name_with_spaces), items=one_item
)
"""How many things of each kind there are."""


@shared
def contents(
    session: Session,
    kind: RecordKind | None = argument("KIND", "List the records of this kind. Default: count all kinds.", None),
    search: str | None = option("--search TEXT", "Only records whose id, channel or user contains this text."),
) -> None:
    """List the data in the emulator, of all extensions and channels.

    Without KIND, prints the number of records of each kind; 10,000 means 10,000 or more. With KIND,
    --client-id and --channel limit the list. Codes and PINs are not shown; a PIN is listed by the
    start of its digest.

    \b
    Examples:
      extcli contents
      extcli contents polls --search lunch
    """
    control = session.control()
    if kind is None:
        session.output.show(control.get("contents"), COUNTS)
        return
    flags, name = session.resolver.flags, kind.value.replace("-", "_")
    only = {"client_id": flags.client_id, "channel_id": flags.channel, "search": search}
    path = f"contents/{name}"
    show_all_pages(session, lambda cursor: control.get(path, **only, limit=200, cursor=cursor), "rows", RECORDS)


@partial(shared, loses="all data is deleted, or with --undo replaced by the earlier data", is_control=True)
def reset(
    session: Session,
    undo: bool = flag("--undo", "Restore the data and the clock from before the latest reset."),
    keep: str | None = option("--keep DURATION", "Keep the old data for --undo for this long, at most 10m."),
) -> None:
    """Delete all data of the emulator, and reset its clock to real time.

    Also deletes the stored links to it: they are no longer valid.

    After a reset with --keep or in the dashboard, `extcli reset --undo` restores everything.
    Data written since the reset is lost then. --keep does not work on Redis.

    \b
    Examples:
      extcli reset
      extcli reset --keep 1m && extcli reset --undo
    """
    from extcli.realtime import login

    refuse_both(undo, keep, "--undo and --keep")
    seconds, rest = divmod(times.parse_duration(keep or "0s"), 1_000)
    if rest or seconds > MAX_UNDO_SECONDS or (keep is not None and not seconds):
        raise UsageError(f"--keep: {keep} is not a whole number of seconds from 1s to 10m")
    if undo:
        session.output.done(session.control().send("POST", "undo"), "restored the data and the clock")
        return
    response = session.control().send("POST", "reset", undo=seconds or None)
    session.output.done(response, "deleted all data; the clock shows real time")
    if keep is None:  # else `--undo` brings the links back
        login.delete_links(session)


# `extcli clock`


_NEXT_EXPIRIES = listing(
    "next",
    Column("Unix ms", "at", "expires (UTC)", text=lambda at: times.utc_text(at)[:16]),
    Column("kind"),
    Column("id"),
    Column("client id", "client_id"),
    Column("channel", "channel_id"),
    else_shown="nothing will expire",
)
"""What expires next."""


@command(clock_app)
def now(session: Session) -> None:
    """Print the time of the clock. Plain output is Unix milliseconds.

    Example: extcli clock now
    """
    session.output.show(session.control().get("clock"), views.CLOCK)


@command(clock_app, loses="the clock moves, and data may expire", is_control=True)
def advance(session: Session, by: str = argument("DURATION", "How far: 500ms, 30s, 5m, 1h30m, 8d, 2w.")) -> None:
    """Move the clock forward, and print what expired.

    Example: extcli clock advance 8d
    """
    _change_clock(session, advance=times.parse_duration(by))


@command(clock_app, "set", loses="the clock moves, and data may expire", is_control=True)
def set_clock(session: Session, to: str = argument("TIME", f"{times.FORMS}; or `system`.")) -> None:
    """Set the clock, and print what expired. `system` sets it back to the system's time.

    A duration counts from the time of the emulator's clock.

    \b
    Examples:
      extcli clock set 2026-12-24T18:00:00Z
      extcli clock set -1h
      extcli clock set system
    """
    _change_clock(session, set=to if to == "system" else times.parse_instant(to, session.now))


@command(clock_app, loses="the clock stops or runs again, and data may expire", is_control=True)
def freeze(session: Session, off: bool = flag("--off", "Let a frozen clock run again.")) -> None:
    """Stop the clock.

    Example: extcli clock freeze && extcli clock freeze --off
    """
    _change_clock(session, freeze=not off)


@command(clock_app, "next", prints=_NEXT_EXPIRIES)
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
    coming = session.control().get("clock/next", limit=1 if jump else limit)
    if not jump:
        session.output.show(coming, _NEXT_EXPIRIES)
        return
    confirm.ask_in_production(session, "the clock moves, and data may expire", yes=yes, is_control=True)
    document = document_of(coming, {"now": int, "next": [{"at": int}]})
    if not document["next"]:
        raise ExpectationFailed("nothing will expire")
    _change_clock(session, advance=max(0, document["next"][0]["at"] - document["now"]))


def _change_clock(session: Session, **change: int | bool | str) -> None:
    session.output.show(session.control().post("clock", change), views.MOVED_CLOCK)
