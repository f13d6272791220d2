"""Lists polls, rankings, buffers and contents page by page, and deletes a poll or ranking."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from string import Template
from typing import TYPE_CHECKING, Annotated, Any

import typer

from extcli.cli import command, confirm, flag
from extcli.errors import CliError, TooLarge, UnexpectedResponse, UsageError, shortened
from extcli.output import views
from extcli.output.columns import Column, grouped, instant, listing, shown
from extcli.output.format import Format
from extcli.output.printer import View
from extcli.output.sanitize import visible
from extcli.reading.shapes import SHAPE_ERRORS, document_of
from extcli.reading.streams import LARGEST_WHOLE
from extcli.session import BACKEND, Session, definer_of, is_global

if TYPE_CHECKING:
    from extcli.api.client import Service
    from extcli.api.http import Response

END = "0"
"""The cursor of the first page, and `next` of the last."""


def _status(poll: dict[str, Any]) -> str:
    """Return the status of a poll, which refuses votes if it is disabled."""
    return f"{poll.get('status', '')}{', disabled' if poll.get('disabled') else ''}"


def _listing(member: str, counted: str, latest: str, *own: Column) -> View:
    return listing(
        member,
        Column("id", text=shown, folds=True),
        Column("channel", "channel_id", text=shown, folds=True),
        Column(counted, "count", text=grouped, right=True),
        *own,
        Column(latest, "latest", "latest (UTC)", instant),
        else_shown=f"no {member}",
    )


POLLS = _listing("polls", "votes", "latest vote", Column("status", _status))
RANKINGS = _listing("rankings", "answers", "latest answer")
BUFFERS = _listing("buffers", "entries", "latest entry")


def show_all(session: Session, read: Callable[[str], Response], member: str, view: View, *, next: str = "next") -> None:
    """Print all pages of a list: as one table or JSON document, in other formats each page as it arrives.

    `read` returns the page at a cursor.
    A list of one page is printed as JSON byte for byte. `next` is `next?` if the last page may leave it out.
    """
    cursor, found, seen = END, [], set[str]()
    size = 0
    as_one = session.output.format in (Format.TABLE, Format.JSON) or session.output.query is not None
    while True:
        response = read(cursor)
        document = document_of(response, {member: [dict], next: str})
        size += len(response.content)
        following = document.get("next") or END
        is_whole, cursor = cursor == following == END, following
        if cursor in seen and cursor != END:
            raise UnexpectedResponse(response, f"next must be another cursor, not {shortened(cursor, 40)!r}")
        seen.add(cursor)
        if as_one and size > LARGEST_WHOLE:
            raise TooLarge(f"the list of {response.request.url.path}", LARGEST_WHOLE)
        found += document[member]
        if not as_one or is_whole:
            session.output.show(response, view)
            found.clear()
        if cursor == END:
            break
    if as_one and not is_whole:
        session.output.show_value({**document, member: found}, view, of=response)


def add_list(app: typer.Typer, noun: str, member: str, view: View) -> None:
    """Add the verb `list` to a noun. `member` is what the service calls the list, such as `polls`."""

    def list_all(session: Session) -> None:
        """List the $member of all channels. Acts as backend; --channel selects a channel.

        --as broadcaster lists only the $member of the broadcaster's channel. Plain output is
        $columns, with the time in Unix ms.

        Example: extcli $noun list --channel 1001
        """
        show_all(session, getattr(session.service(BACKEND), f"list_{member}"), member, view)

    list_all.__doc__ = Template(list_all.__doc__ or "").safe_substitute(noun=noun, member=member)
    command(app, "list", prints=view)(list_all)


AllChannels = Annotated[bool, flag("--all-channels", "Delete the record of this id in all channels. Acts as backend.")]


def delete(
    session: Session,
    what: str,
    name: str,
    *,
    with_it: str,
    clear: Callable[[Service], Response],
    exists: Callable[[Service], bool],
    all_channels: bool,
    yes: bool,
) -> None:
    """Delete a poll or ranking with `clear`, after a confirmation in production. `what` is the kind, such as "poll".

    `exists` is called first, to report that there was none. Raises `UsageError` for a deletion in all channels without
    --all-channels.
    """
    acts_as = BACKEND if all_channels else definer_of(name)
    deleted, spans = f"{what} {visible(name)}", session.spans_channels(acts_as)
    if all_channels and not spans:
        raise UsageError(
            "--all-channels needs the role backend or admin, and no channel",
            fix="leave out --as and --channel, and unset EXTCLI_AS and EXTCLI_CHANNEL",
        )
    if spans and not is_global(name):
        deleted += " in all channels"
        if not all_channels:
            raise UsageError(
                f"without a channel this deletes {deleted}", fix="choose one with --channel ID, or add --all-channels"
            )
    confirm.guard(session, f"{deleted} is deleted, with {with_it}", yes=yes)
    service = session.service(acts_as)
    was_there = not session.output.shows_notes or _did_exist(exists, service)
    session.output.show(clear(service), views.NOTHING)
    session.output.note(f"{deleted} is deleted" if was_there else f"there was no {what} {visible(name)}")


def _did_exist(exists: Callable[[Service], bool], service: Service) -> bool:
    """Return whether a poll or ranking exists; true if the service does not say."""
    with suppress(CliError, *SHAPE_ERRORS):
        return exists(service.probing())
    return True
