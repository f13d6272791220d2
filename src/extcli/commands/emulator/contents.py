"""`extcli contents`: lists what the emulator holds, over all extensions and channels. `extcli reset`: deletes it."""

from __future__ import annotations

from enum import StrEnum

from emulator.contract.limits import MAX_UNDO_SECONDS
from extcli.cli import argument, flag, option, shared
from extcli.cli.confirm import Yes, guard
from extcli.commands.data.listing import show_all
from extcli.errors import UsageError
from extcli.output import times, views
from extcli.output.columns import Column, grouped, instant, listing, name_and_count_columns, name_with_spaces, whole
from extcli.output.printer import View
from extcli.session import Session


class Kind(StrEnum):
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


def _number(name: str, heading: str) -> Column:
    return Column(name, heading=heading, text=grouped, right=True)


_SIZE = _number("size", "bytes")
_OWN = {
    Kind.POLLS: [_number("count", "votes"), Column("status")],
    Kind.RANKINGS: [_number("count", "answers")],
    Kind.BUFFERS: [_number("count", "entries")],
    Kind.STORES: [Column("user", lambda each: each.get("user", "")), _SIZE],
    Kind.JSON_STORES: [_SIZE],
    Kind.CODES: [Column("name"), _number("count", "handed out"), _number("left", "left")],
    Kind.PINS: [Column("status")],
    Kind.LINKS: [_SIZE],
    Kind.TRIVIA: [_SIZE],
    Kind.PURCHASES: [Column("user", heading="buyer"), Column("name", heading="product")],
}
"""The columns between the names and the times of a kind."""


def _view_of(kind: Kind) -> View:
    return listing(
        "rows",
        Column("id", folds=True),
        Column("client_id", heading="client id", folds=True),
        Column("channel_id", heading="channel", folds=True),
        *_OWN[kind],
        Column("latest", lambda each: each.get("latest", ""), in_table=False),
        Column("expires_at", heading="expires (UTC)", text=instant),
        else_shown=f"no {kind.value.replace('-', ' ')}",
    )


COUNTS = listing(lambda counts: counts.items(), *name_and_count_columns(text=name_with_spaces, plain=str), items=whole)
"""How many things of each kind there are."""


@shared
def contents(
    session: Session,
    kind: Kind | None = argument("KIND", "List the records of this kind. Default: count all kinds.", None),
    search: str | None = option("--search TEXT", "Only records whose id, channel or user contains this text."),
) -> None:
    """List the data in the emulator, of all extensions and channels.

    Without KIND, prints the number of records of each kind; 10,000 may mean more. With KIND,
    --client-id and --channel limit the list. Codes and PINs are not shown; a PIN is listed by the
    start of its digest.

    \b
    Examples:
      extcli contents
      extcli contents polls --search lunch
    """
    control = session.control()
    if kind is None:
        session.output.show(control.count_contents(), COUNTS)
        return
    flags, name = session.resolver.flags, kind.value.replace("-", "_")
    only = {"client_id": flags.client_id, "channel_id": flags.channel, "search": search}
    show_all(session, lambda cursor: control.list_contents(name, only, cursor), "rows", _view_of(kind))


@shared
def reset(
    session: Session,
    undo: bool = flag("--undo", "Restore the data and the clock from before the latest reset."),
    keep: str | None = option("--keep DURATION", "Keep the old data for --undo for this long, at most 10m."),
    yes: Yes = False,
) -> None:
    """Delete all data of the emulator, and reset its clock to real time.

    Also deletes the stored links to it: they are no longer valid.

    With --keep, or after a reset in the dashboard, `extcli reset --undo` brings everything back.
    Data written since the reset is lost then. --keep does not work on Redis.

    \b
    Examples:
      extcli reset
      extcli reset --keep 1m && extcli reset --undo
    """
    from extcli.realtime import login

    if undo and keep is not None:
        raise UsageError("--undo and --keep exclude each other")
    seconds = _seconds(keep)
    loss = "all data is replaced, and the clock may move" if undo else "all data is deleted"
    guard(session, loss, yes=yes, is_control=True)
    if undo:
        session.output.show(session.control().undo_reset(), views.NOTHING)
        session.output.note("the data and the clock are back")
        return
    session.output.show(session.control().reset(seconds), views.NOTHING)
    session.output.note("deleted all data; the clock shows real time")
    if keep is None:  # else `--undo` brings the links back
        login.delete_links(session)


def _seconds(keep: str | None) -> int:
    """Return whole seconds; 0 if the data is not kept. Raises `UsageError`."""
    if keep is None:
        return 0
    seconds, rest = divmod(times.duration(keep), 1_000)
    if rest or not 1 <= seconds <= MAX_UNDO_SECONDS:
        raise UsageError(f"--keep: {keep} is not a time of whole seconds from 1s to 10m")
    return seconds
