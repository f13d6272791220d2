"""`extcli logs`: the journal of an emulator: reads, follows, exports it, and repeats its requests."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import chain
from math import inf
from pathlib import Path
from typing import Annotated, Any

from extcli import clock
from extcli.api.call import SERVICE
from extcli.atomic_file import replacement_of, write_errors
from extcli.cli import argument, command, flag, noun_and_command, option
from extcli.cli.confirm import in_production
from extcli.cli.option_groups import Since, with_journal_filters
from extcli.errors import UsageError
from extcli.journal import reading, views
from extcli.output.format import Format, flush
from extcli.output.sanitize import compact
from extcli.reading import Json
from extcli.session import Session

_DEFAULT_LIMIT = 100
_FOLLOWED_LIMIT = 10
"""Entries that `-f` shows of those before it."""

Id = Annotated[str, argument("ID", "A request id, the number of an entry, or `latest`.")]
Namespace = Annotated[str | None, option("--ns NAME", "Read the journal of this namespace.")]


class CopyForm(StrEnum):
    """The form in which to print a request."""

    CURL = "curl"
    EXTCLI = "extcli"
    PYTEST = "pytest"


@with_journal_filters
def _logs(
    session: Session,
    follow: bool = flag("-f --follow", "Keep running, and show new entries as they happen."),
    since: Since = None,
    limit: int | None = option("-n --limit --tail N", "Show the latest N entries. Default: 100, or 10 with -f.", min=1),
    count: int | None = option("--count N", "With -f: exit after N entries.", min=1),
    ns: Namespace = None,
    *,
    query: Json,
) -> None:
    """Show the latest requests, socket messages and deliveries, and why some were refused.

    --client-id and --channel also select entries, if given. The oldest entry comes first. With
    -f, a lost connection is retried for up to two minutes, and standard error says how many entries
    were lost; jsonl has {"lost": 12} instead. -f ends after --count entries or, if given, at
    --timeout.

    Plain output is $columns, with the time in
    Unix milliseconds.

    \b
    Examples:
      extcli logs --status 4xx
      extcli logs -f --path vote --role viewer
      extcli logs --since 5m --production stage -o jsonl
    """
    _choose_namespace(session, ns)
    if not follow:
        if count is not None:
            raise UsageError("--count needs -f", fix="use --limit for the latest entries")
        found = reading.latest_entries(session, query, since=since, limit=limit or (None if since else _DEFAULT_LIMIT))
        if lost := found["lost"]:
            session.output.report(f"gap: {lost:,} entries after --since are no longer in the journal")
        session.output.show_value(found, views.ENTRIES)
        if found["more"] and limit is None:
            session.output.note(f"these are the latest {_DEFAULT_LIMIT} entries; --limit N or --since TIME shows more")
        return
    deadline = clock.elapsed() + session.resolver.timeout() if session.resolver.flags.timeout else inf
    found = {"entries": [], "mark": reading.parse_mark(since) if since else None, "run": ""}
    if found["mark"] is None:
        found = reading.latest_entries(session, query, since=since, limit=limit or (None if since else _FOLLOWED_LIMIT))
    follower = reading.JournalFollower(session, query, found["mark"], found["run"])
    _print_entries(session, chain(found["entries"], follower.follow(deadline)), count)


def _print_entries(session: Session, items: Iterable[Json], count: int | None) -> None:
    """Print entries as they come, one flushed line each, at most `count`, and as JSON also gaps."""
    output, shown, clients = session.output, 0, set[str]()
    as_json = output.format in (Format.JSON, Format.JSONL)
    for item in items:
        is_gap = "lost" in item
        if as_json and (is_gap or not output.query):
            output.line(compact(item))
        elif not is_gap:
            clients |= views.client_ids([item])
            output.show_value(item, views.entry_view(with_client=len(clients) > 1))
        flush()
        shown += not is_gap
        if shown == count:
            return


def _choose_namespace(session: Session, name: str | None) -> None:
    """Read the journal of another namespace of the same service."""
    if name is not None:
        root = session.http.url.partition("/_ns/")[0]
        session.http = session.http.at(root if name == "default" else f"{root}/_ns/{name}")


app = noun_and_command(_logs, prints=views.ENTRIES)


@command(app)
def show(
    session: Session,
    id: Id,
    copy_as: CopyForm | None = option("--copy-as curl|extcli|pytest", "Print the request as a command or a test."),
    ns: Namespace = None,
) -> None:
    """Show everything that the journal has about one request, frame or delivery.

    A request or frame is shown with the broadcasts and updates that it caused, and their
    recipients. --copy-as prints the request as a shell command, an extcli command or a pytest test.
    The printed command requests its own token; replace `[hidden]` with the secret that it stands
    for.

    \b
    Examples:
      extcli logs show latest
      extcli logs show latest --copy-as curl
    """
    _choose_namespace(session, ns)
    entry = reading.find_entry(session, id)
    if copy_as is None:
        entry = reading.with_deliveries(session, entry)
        session.output.show_value(entry, views.ENTRY)
        return
    form = {"as": copy_as.value, "url": session.http.url}
    session.output.body([session.control().get("journal/entry", id=str(entry["number"]), **form).content])


@command(app)
@with_journal_filters
def export(
    session: Session,
    har: Path | None = option("--har FILE|-", "Write the requests to this file, as an HTTP Archive."),
    jsonl: Path | None = option("--jsonl FILE|-", "Write all entries to this file, one line of JSON each."),
    since: Since = None,
    ns: Namespace = None,
    *,
    query: Json,
) -> None:
    """Write the journal to files, as HAR 1.2 or JSONL.

    Only JSONL contains frames and deliveries. Both files are free of tokens, PINs, codes and
    secrets.

    \b
    Examples:
      extcli logs export --har run.har
      extcli logs export --jsonl - --status 4xx
    """
    if har is None and jsonl is None:
        raise UsageError("nothing to write", fix="name a file: --har FILE or --jsonl FILE")
    if str(har) == str(jsonl):
        raise UsageError("--har and --jsonl name the same file")
    _choose_namespace(session, ns)
    entries = reading.latest_entries(session, query, since=since, limit=None)["entries"]
    if har is not None:
        requests = [entry for entry in entries if entry["kind"] == "request"]
        _write_lines(session, har, views.har_lines(requests, session.http.url.partition("/_ns/")[0]))
        session.output.report(f"wrote {_entry_count(requests)} to {har}")
        if others := len(entries) - len(requests):
            session.output.report(f"left out {others:,} frames and deliveries; --jsonl FILE writes them")
    if jsonl is not None:
        _write_lines(session, jsonl, map(compact, entries))
        session.output.report(f"wrote {_entry_count(entries)} to {jsonl}")


def _entry_count(entries: list[Any]) -> str:
    return f"{len(entries):,} {'entry' if len(entries) == 1 else 'entries'}"


def _write_lines(session: Session, path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file in one step, or to standard output."""
    if str(path) == "-":
        for line in lines:
            session.output.line(line)
        return
    with write_errors(path), replacement_of(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


@command(app, prints=views.REPLAYS)
def replay(
    session: Session, id: Id, times: int = option("--times N", "How often.", 1, min=1, max=1000), ns: Namespace = None
) -> None:
    """Send a recorded request again, and compare the responses.

    Acts as the same caller. Prints the status of the first response and of the new one, and whether
    the body differs. Only a sandbox can replay requests. A production profile is refused, and so is
    a request whose body was longer than 4 KiB or had a secret. `latest` is the latest request below
    /v1/e/.

    Plain output is $columns.

    \b
    Examples:
      extcli logs replay latest
      extcli logs replay latest --times 3
    """
    if in_production(session):
        raise UsageError("requests cannot be repeated in production", fix="use -p or --url to choose a sandbox")
    _choose_namespace(session, ns)
    entry = reading.latest_request(session, SERVICE) if id == reading.LATEST else reading.find_entry(session, id)
    session.output.show_value(reading.replay_request(session, entry, times), views.REPLAYS)
