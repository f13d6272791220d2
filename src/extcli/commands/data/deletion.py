"""Deleting a poll or ranking in one channel or in all: backend and admin without a channel act for all (ruling A4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from extcli.cli import confirm
from extcli.commands.data.listing import END
from extcli.errors import CliError, ErrorAnswer, UsageError
from extcli.output import views
from extcli.output.printer import Answer
from extcli.output.sanitize import visible
from extcli.reading.shapes import SHAPE_ERRORS, document_of
from extcli.session import BACKEND, BROADCASTER, Session, is_global

if TYPE_CHECKING:
    from extcli.api.client import Service

AllChannels = Annotated[bool, typer.Option("--all-channels", help="Delete it in all channels. Acts as backend.")]
Pages = Callable[[str], Answer]
"""Returns the page of a listing at a cursor."""
_COUNTED_PAGES = 20


def delete(
    session: Session,
    what: str,
    name: str,
    *,
    with_it: str,
    clear: Callable[[Service], Answer],
    exists: Callable[[Service], bool],
    pages: Callable[[Service], Pages],
    all_channels: bool,
    yes: bool,
) -> None:
    """Delete a poll or ranking with `clear`, after a confirmation in production. `what` is the kind, such as "poll".

    `exists` is asked before, to say so if there was none, and `pages` lists all of that kind. Raises `UsageError` for a
    deletion in all channels without --all-channels.
    """
    acts_as = BACKEND if all_channels else BROADCASTER
    deleted, spans = f"{what} {visible(name)}", session.spans_channels(acts_as)
    if all_channels and not spans:
        raise UsageError(
            "--all-channels needs the role backend or admin, and no channel",
            fix="leave out --as and --channel, and unset EXTCLI_AS and EXTCLI_CHANNEL",
        )
    count, is_counted = None, spans and not is_global(name)
    if is_counted:
        count = _channels(pages(session.service(acts_as).probing()), f"{what}s", name)
        deleted += " in all channels" if count is None else f" in all channels that have it ({count:,})"
        if not all_channels:
            raise UsageError(
                f"without a channel this deletes {deleted}",
                fix="choose one with --channel ID, or add --all-channels",
            )
    confirm.guard(session, f"{deleted} is deleted, with {with_it}", yes=yes)
    service = session.service(acts_as)
    was_there = count != 0 if is_counted else not session.output.shows_notes or _was(exists, service)
    session.output.show(clear(service), views.NOTHING)
    nowhere = f"there was no {what} {visible(name)}{' in any channel' if is_counted else ''}"
    session.output.note(f"{deleted} is deleted" if was_there else nowhere)


def _was(exists: Callable[[Service], bool], service: Service) -> bool:
    """Return whether it exists; true if the service does not say."""
    try:
        return exists(service.probing())
    except (CliError, *SHAPE_ERRORS):
        return True


def _channels(read: Pages, member: str, name: str) -> int | None:
    """Return how many channels have a poll or ranking of this id; `None` if there is no listing, or it is too long."""
    cursor, channels = END, set[str]()
    for _ in range(_COUNTED_PAGES):
        try:
            document = document_of(read(cursor))
            cursor = str(document["next"])
            channels.update(each["channel_id"] for each in document[member] if each["id"] == name)
        except (ErrorAnswer, *SHAPE_ERRORS):
            return None
        if cursor == END:
            return len(channels - {""})
    return None
