"""The options that select entries of the journal, declared once for all commands that have them."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli.cli.option_groups import with_options
from extcli.session import Session

Since = Annotated[
    str | None,
    typer.Option("--since", metavar="MARK|TIME", help="Only entries after this number, or of the last 5m, 1h, …"),
]


def filters(
    session: Session,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="4xx|403",
            help="Only these statuses, such as 4xx or 400,503; `none`: a fault suppressed the response.",
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="TEXT", help="Only entries with this text in their path, action or topic."),
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", metavar="METHOD", help="Only requests with this HTTP method.")
    ] = None,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help="Only entries of callers with this role.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="ID", help="Only entries of this user, by id or opaque id.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", metavar="KIND", help="Only these kinds: request, frame or delivery; join several with commas."
        ),
    ] = None,
    production: Annotated[
        str | None,
        typer.Option(
            "--production",
            metavar="RULE|any",
            help="Only requests that production would have handled differently, by this rule.",
        ),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(
            "--search", metavar="TEXT", help="Only entries with this text in their path, bodies, caller or refusal."
        ),
    ] = None,
    probes: Annotated[
        bool, typer.Option("--probes", help="Include the requests that extcli sends for its own purposes.")
    ] = False,
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
