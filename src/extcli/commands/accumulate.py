"""`extcli accumulate`: buffers of small JSON documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from extcli.cli.json_input import read_bytes
from extcli.cli.shared_options import Concurrency, Skip, command, noun
from extcli.commands.listing import show_all
from extcli.errors import UsageError
from extcli.output import listing_views, times, views
from extcli.session import BACKEND, BROADCASTER, VIEWER, Session

app = noun("Buffers: users add small JSON documents, a backend reads them.")


@command(app)
def add(
    session: Session,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID] JSON", help="The buffer's id, and the document: JSON, - or @file."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Add many: one JSON document per line; - reads standard input."),
    ] = None,
    user_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="With --from: the member of each document that names its user; it is sent, too."
        ),
    ] = None,
    skip: Skip = 0,
    concurrency: Concurrency = 32,
) -> None:
    """Add a JSON document of less than 256 bytes to a buffer. Acts as viewer:U1.

    \b
    Examples:
      extcli accumulate add ratings '{"stars": 5}'
      extcli accumulate add ratings --from ratings.jsonl --user-field user
    """
    session.warn_without_channel(VIEWER, "the document" if source is None else "each document", "")
    given = list(words or [])
    if not 1 <= len(given) + (source is not None) <= 2 or len(given) > (2 if source is None else 1):
        raise UsageError("no document, or several", fix="give [ID] JSON, or [ID] --from FILE")
    if source is None:
        if user_field is not None:
            raise UsageError("--user-field requires --from", fix="use --as viewer:USER for a single document")
        content = read_bytes(given.pop())
        session.output.show(session.service(VIEWER).add_to_buffer(content, buffer=_id(given)), views.NOTHING)
        session.output.note("added")
        return
    from extcli.bulk import input_lines, operations, sender

    documents = input_lines.documents(source, user_field, skip=skip)
    sender.send(session, documents, operations.additions(_id(given)), acts_as=VIEWER, concurrency=concurrency)


def _id(given: list[str]) -> str:
    return given[0] if given else "default"


@command(app)
def get(
    session: Session,
    buffer: Annotated[str, typer.Argument(metavar="ID", help="The buffer's id.")] = "default",
    since: Annotated[
        str | None,
        typer.Option("--since", "--start", metavar="TIME", help=f"Only entries from then on: {times.FORMS_AGO}."),
    ] = None,
) -> None:
    """Read a buffer, newest first. Acts as broadcaster; --as backend reads all channels.

    Plain output is `observed<TAB>channel_id<TAB>user<TAB>data`. A duration counts back from the
    emulator's clock, or else from this machine's.

    \b
    Examples:
      extcli accumulate get ratings --since 5m
      extcli accumulate get ratings --as backend -o jsonl
    """
    earliest = None if since is None else times.instant(since, session.now, ago=True)
    with session.service(BROADCASTER).read_buffer(buffer, start=earliest) as answer:
        session.output.show_stream(answer, "data.item", views.BUFFER)


@command(app, "list")
def list_buffers(session: Session) -> None:
    """List the buffers of all channels. Acts as backend; --channel selects a channel.

    --as broadcaster lists those of the broadcaster's channel. Plain output is
    `id<TAB>channel<TAB>entries<TAB>latest entry`, with the time in Unix ms.

    Example: extcli accumulate list --channel 1001
    """
    show_all(session, session.service(BACKEND).list_buffers, "buffers", listing_views.BUFFERS)
