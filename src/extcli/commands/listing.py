"""Lists polls, rankings, buffers and contents page by page, and deletes a poll or ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from string import Template
from typing import Annotated, Any

import typer

from extcli.cli import command, confirm, flag
from extcli.cli.confirm import Yes
from extcli.errors import UnexpectedResponse, UsageError, shortened
from extcli.output.columns import Column, int_column, listing, time_text
from extcli.output.format import Format
from extcli.output.printer import View
from extcli.output.sanitize import visible
from extcli.reading import Json, Response, document_of
from extcli.session import BACKEND, Session, definer_role, is_global

END_CURSOR = "0"
"""The cursor of the first page, and `next` of the last."""


def _poll_status(poll: Json) -> str:
    """Return the status of a poll, which refuses votes if it is disabled."""
    return f"{poll.get('status', '')}{', disabled' if poll.get('disabled') else ''}"


def _list_view(member: str, counted: str, latest: str, *own: Column) -> View:
    return listing(
        member,
        Column("id"),
        Column("channel", "channel_id"),
        int_column(counted, "count"),
        *own,
        Column(latest, "latest", "latest (UTC)", time_text),
        else_shown=f"no {member}",
    )


POLLS = _list_view("polls", "votes", "latest vote", Column("status", _poll_status))
RANKINGS = _list_view("rankings", "answers", "latest answer")
BUFFERS = _list_view("buffers", "entries", "latest entry")


def show_all_pages(session: Session, read: Callable[[str], Response], member: str, view: View) -> None:
    """Print all pages of a list: as one table or JSON document, in other formats each page as it arrives.

    `read` returns the page at a cursor. A list of one page is printed as JSON byte for byte.
    """
    pages = _read_pages(read, member)
    if session.output.format not in (Format.TABLE, Format.JSON) and session.output.query is None:
        for response, _ in pages:
            session.output.show(response, view)
        return
    found = list(pages)
    response, document = found[-1]
    if len(found) == 1:
        session.output.show(response, view)
    else:
        records = [record for _, page in found for record in page[member]]
        session.output.show_value({**document, member: records}, view, of=response)


def _read_pages(read: Callable[[str], Response], member: str) -> Iterator[tuple[Response, Json]]:
    """Yield each page with its document; the last may leave `next` out. Raises `UnexpectedResponse`."""
    cursor, seen = END_CURSOR, {END_CURSOR}
    while True:
        response = read(cursor)
        document = document_of(response, {member: [dict], "next?": str})
        yield response, document
        cursor = document.get("next") or END_CURSOR
        if cursor == END_CURSOR:
            return
        if cursor in seen:
            raise UnexpectedResponse(response, f"`next` must be a new cursor, not {shortened(cursor, 40)!r}")
        seen.add(cursor)


def add_list_command(app: typer.Typer, noun: str, member: str, view: View) -> None:
    """Add the verb `list` to a noun. `member` is what the service calls the list, such as `polls`."""

    def list_all(session: Session) -> None:
        """List the $member of all channels. Acts as backend; --channel selects a channel.

        --as broadcaster lists only the $member of the broadcaster's channel. Plain output is
        $columns, with the time in Unix ms.

        Example: extcli $noun list --channel 1001
        """
        service = session.service(BACKEND)
        show_all_pages(session, lambda cursor: service.get(member, cursor=cursor), member, view)

    list_all.__doc__ = Template(list_all.__doc__ or "").safe_substitute(noun=noun, member=member)
    command(app, "list", prints=view)(list_all)


AllChannels = Annotated[bool, flag("--all-channels", "Delete this id in all channels. Acts as backend.")]


def add_rm_command(app: typer.Typer, noun: str, what: str, id: Any, with_it: str) -> None:
    """Add the verb `rm` to a noun: it deletes a poll or ranking `with_it`. `what` is the kind, such as "poll"."""

    def rm(session: Session, name: str = id, all_channels: AllChannels = False, yes: Yes = False) -> None:
        """Delete a $what with $with_it. Acts as broadcaster, or backend for `global-…`.

        Without --channel, backend and admin delete it in all channels; that needs --all-channels.

        
        Examples:
          extcli $noun rm lunch
          extcli $noun rm lunch --all-channels
        """
        acts_as = BACKEND if all_channels else definer_role(name)
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
                    f"no channel is given, so this would delete {deleted}",
                    fix="choose one with --channel ID, or add --all-channels",
                )
        confirm.ask_in_production(session, f"{deleted} is deleted, with {with_it}", yes=yes)
        session.output.done(session.service(acts_as).delete(noun, id=name), f"deleted {deleted}")

    rm.__doc__ = Template(rm.__doc__ or "").substitute(noun=noun, what=what, with_it=with_it)
    command(app)(rm)
