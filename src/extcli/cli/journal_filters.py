"""The options that select entries of the journal, declared once for all commands that have them."""

from __future__ import annotations

from typing import Annotated

from extcli.cli.options import flag, option, with_options
from extcli.session import Session

Since = Annotated[str | None, option("--since MARK|TIME", "Only entries after this number, or of the last 5m, 1h, …")]


def filters(
    session: Session,
    status: str | None = option(
        "--status 4xx|403", "Only these statuses, such as 4xx or 400,503; `none`: a fault suppressed the response."
    ),
    path: str | None = option("--path TEXT", "Only entries with this text in their path, action or topic."),
    method: str | None = option("--method METHOD", "Only requests with this HTTP method."),
    role: str | None = option("--role ROLE", "Only entries of callers with this role."),
    user: str | None = option("--user ID", "Only entries of this user, by id or opaque id."),
    kind: str | None = option("--kind KIND", "Only these kinds: request, frame or delivery; join several with commas."),
    production: str | None = option(
        "--production RULE|any", "Only requests that production would have handled differently, by this rule."
    ),
    search: str | None = option(
        "--search TEXT", "Only entries with this text in their path, bodies, caller or refusal."
    ),
    probes: bool = flag("--probes", "Include the requests that extcli sends for its own purposes."),
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
