"""The options that select entries of the journal, declared once for all commands that have them."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli.cli.option_groups import with_options
from extcli.session import Session

Since = Annotated[
    str | None, typer.Option("--since", metavar="MARK|TIME", help="Only entries after a mark, or since a time: 5m.")
]


def filters(
    session: Session,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="4xx|403",
            help="These statuses; join several with commas. none: no answer, because of a fault.",
        ),
    ] = None,
    path: Annotated[str | None, typer.Option("--path", metavar="TEXT", help="A part of path, action or topic.")] = None,
    method: Annotated[str | None, typer.Option("--method", metavar="METHOD", help="This method.")] = None,
    role: Annotated[str | None, typer.Option("--role", metavar="ROLE", help="The role of the caller.")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="ID", help="The id or opaque id of the caller.")] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="request, frame or delivery; join with commas.")
    ] = None,
    production: Annotated[
        str | None,
        typer.Option("--production", metavar="RULE|any", help="Production would have acted otherwise, by this rule."),
    ] = None,
    search: Annotated[
        str | None, typer.Option("--search", metavar="TEXT", help="A text in path, bodies, caller or refusal.")
    ] = None,
    probes: Annotated[bool, typer.Option("--probes", help="Also the requests that extcli made for itself.")] = False,
) -> dict[str, str]:
    """Return the parameters of a query."""
    flags = session.resolver.flags
    given = {
        "status": status, "path": path, "method": method, "role": role, "user": user, "kind": kind,
        "production": production, "search": search,
        "probes": "true" if probes else None, "client_id": flags.client_id, "channel_id": flags.channel,
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


filtered = with_options("query", filters)
"""Gives a command the filters as options.

Its parameter `query` receives those given, with --client-id and --channel.
"""
