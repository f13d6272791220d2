"""Options that several commands have: to send the lines of a file, and to select entries of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from extcli.cli.options import flag, option, with_options
from extcli.errors import UsageError
from extcli.session import Session

Concurrency = Annotated[int, option("--concurrency N", "With --from: how many requests at once.", min=1, max=1024)]
Columns = Annotated[str | None, option("--columns USER,VALUE", "With --from: the two columns to read.")]
Skip = Annotated[int, option("--skip N", "With --from: skip N lines, to resume a run.", min=0, show_default=False)]


def value_or_file(value: str | None, file: Path | None, option: str, *, columns: str | None, skip: int) -> str | Path:
    """Return the value of `option`, such as `--key TEXT`, or the file of --from.

    Raises `UsageError` if both are given, or neither, or options without the file that they are about.
    """
    if file is not None and value is None:
        return file
    if file is not None or value is None:
        raise UsageError(f"give either {option} or --from FILE")
    refuse_options_without_file({"--columns": columns, "--skip": skip})
    return value


def refuse_options_without_file(options: Mapping[str, object]) -> None:
    """Raise `UsageError` if an option is given that needs --from."""
    for name, value in options.items():
        if value not in (None, 0):
            raise UsageError(f"{name} requires --from", why="the option is only for lines of a file")


# The journal

Since = Annotated[str | None, option("--since MARK|TIME", "Only entries after this number, or since TIME, such as 5m.")]


def journal_filters(
    session: Session,
    status: str | None = option(
        "--status 4xx|403", "Only these statuses, such as 4xx or 400,503. `none`: a fault dropped the response."
    ),
    path: str | None = option("--path TEXT", "Only entries with this text in their path, action or topic."),
    method: str | None = option("--method METHOD", "Only requests with this HTTP method."),
    role: str | None = option("--role ROLE", "Only entries of callers with this role."),
    user: str | None = option("--user ID", "Only entries of the user with this id or opaque id."),
    kind: str | None = option("--kind KIND", "Only these kinds, separated by commas: request, frame, delivery."),
    production: str | None = option("--production RULE|any", "Only requests that production would handle differently."),
    search: str | None = option("--search TEXT", "Only entries with this text in path, bodies, caller or reason."),
    probes: bool = flag("--probes", "Include requests that extcli sends on its own, such as checks for readiness."),
) -> dict[str, str | None]:
    """Return the parameters of a query, with `None` for those that are not given."""
    flags = session.resolver.flags
    return {
        "status": status, "path": path, "method": method, "role": role, "user": user, "kind": kind,
        "production": production, "search": search,
        "probes": "true" if probes else None, "client_id": flags.client_id, "channel_id": flags.channel,
    }  # fmt: skip


with_journal_filters = with_options("query", journal_filters)
"""Gives a command the filters of the journal as options.

Its parameter `query` receives them, with --client-id and --channel.
"""
