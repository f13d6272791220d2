"""`extcli contents`: lists what the emulator holds, over all extensions and channels."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from extcli.cli.shared_options import shared
from extcli.commands.data.listing import show_all
from extcli.output.contents_views import COUNTS, view_of
from extcli.session import Session


class Kind(StrEnum):
    POLLS = "polls"
    RANKINGS = "rankings"
    BUFFERS = "buffers"
    STORES = "stores"
    JSON_STORES = "json-stores"
    CODES = "codes"
    PINS = "pins"


@shared
def contents(
    session: Session,
    kind: Annotated[Kind | None, typer.Argument(metavar="KIND", help="Only this kind.")] = None,
    search: Annotated[
        str | None, typer.Option("--search", metavar="TEXT", help="Only ids, channels and users that contain this.")
    ] = None,
) -> None:
    """List what the emulator holds, of all extensions and channels.

    Without KIND it prints how many there are of each; 10,000 may mean more. --client-id
    and --channel limit a list. Codes and PINs are not shown: a PIN has the start of a digest.

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
    show_all(session, lambda cursor: control.list_contents(name, only, cursor), "rows", view_of(name))
