"""Deleting in one channel or in all: backend and admin without a channel act for all channels (ruling A4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from extcli.cli import confirm
from extcli.errors import UsageError
from extcli.output.sanitize import visible
from extcli.session import BACKEND, BROADCASTER, Session, is_global

AllChannels = Annotated[bool, typer.Option("--all-channels", help="Delete it in all channels. Acts as backend.")]


def confirmed_deletion(
    session: Session,
    what: str,
    name: str,
    *,
    with_it: str,
    channels: Callable[[str], int | None],
    all_channels: bool,
    yes: bool,
) -> tuple[str, str]:
    """Return the identity to delete as, and what is deleted where, after a confirmation in production.

    `what` is the kind, such as "poll". `channels` counts, as an identity, the channels that have it; `None` is unknown.
    Raises `UsageError` for a deletion in all channels without --all-channels.
    """
    acts_as = BACKEND if all_channels else BROADCASTER
    deleted, spans = f"{what} {visible(name)}", session.spans_channels(acts_as)
    if all_channels and not spans:
        raise UsageError(
            "--all-channels needs the role backend or admin, and no channel",
            fix="leave out --as and --channel, and unset EXTCLI_AS and EXTCLI_CHANNEL",
        )
    if spans and not is_global(name):
        count = channels(acts_as)
        deleted += " in all channels" if count is None else f" in all channels that have it ({count:,})"
        if not all_channels:
            raise UsageError(
                f"without a channel this deletes {deleted}",
                fix="choose one with --channel ID, or add --all-channels",
            )
    confirm.guard(session, f"{deleted} is deleted, with {with_it}", yes=yes)
    return acts_as, deleted
