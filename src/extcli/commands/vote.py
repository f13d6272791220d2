"""`extcli vote`: polls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from emulator.contract.limits import HIGHEST_VOTE, LOWEST_VOTE
from extcli.api.call import vote_cast
from extcli.cli import Watch, argument, command, noun, option, show_live
from extcli.cli.option_groups import Columns, Concurrency, Skip, value_or_file
from extcli.commands import vote_definition
from extcli.commands.listing import POLLS, add_list_command, add_rm_command
from extcli.errors import CliError, UsageError, count_text
from extcli.output import times, views
from extcli.output.columns import Column, build_table, int_column, listing, safe_text, thousands
from extcli.output.format import Format
from extcli.output.printer import RenderableType, View
from extcli.output.sanitize import visible
from extcli.output.terminal import bar
from extcli.output.views import stack
from extcli.reading import SHAPE_ERRORS, Response, document_of, stream_items
from extcli.session import BACKEND, VIEWER, Service, Session

app = noun("Polls: each user's latest vote counts.")

Json = Mapping[str, Any]
_POLL_HELP = "The poll's id; `global-…` is one poll for all channels."
Poll = Annotated[str, argument("POLL", _POLL_HELP)]

_LONGEST_LOG = 10_000
"""Votes that `get` reads one by one."""
_COUNTED_VALUES = 64
_COUNTED_RANGE = f"0 to {_COUNTED_VALUES - 1}"
"""The values that the statistics count one by one."""


def _votes_outside(poll: Json) -> int:
    """Return how many votes have a value that the statistics do not count."""
    return int(poll["stats"]["count"] - sum(poll["stats"]["specific"]))


def _result_view(outside: Mapping[int, int], definition: Json) -> View:
    """Return the view of a poll. A table also shows the prompt and options of its definition, CSV the options.

    `outside` has the votes for values that the statistics do not count, if they are known.
    """
    options = dict(enumerate(definition.get("options") or []))
    option_of = Column("option", lambda each: options.get(each["value"], ""))

    def votes(poll: Json) -> dict[int, int]:
        return {value: count for value, count in enumerate(poll["stats"]["specific"]) if count} | dict(outside)

    def as_table(poll: Json) -> RenderableType:
        total = poll["stats"]["count"] or 1
        columns = [
            Column("value", right=True),
            int_column("votes", "count"),
            Column("", "count", text=lambda count: bar(count / total), fills=True),
            Column("share", "count", text=lambda count: f"{count / total:.1%}", right=True),
        ]
        if options:
            columns.insert(1, option_of)
        rows = _value_counts(dict.fromkeys(options, 0) | votes(poll))
        most = max((row["count"] for row in rows), default=0)
        made = build_table(columns, rows, leads=lambda row: bool(row["count"] == most > 0))
        parts: list[RenderableType] = [made] if rows else []
        if definition.get("prompt"):
            parts.insert(0, safe_text(definition["prompt"]))
        return stack(*parts, ", ".join(_statistics(poll)))

    plain = listing(lambda poll: _value_counts(votes(poll)), Column("value"), Column("count"))
    csv = listing(lambda poll: _value_counts(votes(poll)), Column("value"), option_of, Column("count"))
    return replace(plain, table=as_table, csv=csv.csv)


def _value_counts(votes: Mapping[int, int]) -> list[dict[str, int]]:
    return [{"value": value, "count": count} for value, count in sorted(votes.items())]


def _statistics(poll: Json) -> Iterator[str]:
    stats, outside = poll["stats"], _votes_outside(poll)
    total = stats["count"]
    if not total:
        yield "no votes yet"
        return
    yield f"{count_text(total, 'vote')}, mean {stats['mean']:g}, stddev {stats['stddev']:.4g}, sum {stats['sum']:,}"
    if outside:
        yield f"{outside:,} outside {_COUNTED_RANGE}"
    if "vote" in poll:
        yield f"yours: {poll['vote']}"


_VOTE_LOG = listing(
    "",
    Column("identifier", heading="voter"),
    Column("opaque", heading="opaque id"),
    Column("value", right=True),
    Column("timestamp", heading="received (UTC)", text=lambda at: times.utc_text(int(at))),
    Column("count", lambda vote: vote.get("count", 1), text=thousands, right=True),
    else_shown="no votes yet",
)


@command(app)
def cast(
    session: Session,
    poll: Poll = "default",
    number: int | None = argument("N", f"The vote, {LOWEST_VOTE} to {HIGHEST_VOTE}. Option numbers start at 0.", None),
    value: int | None = option("--value N", "The vote, if N is not given. The default POLL is `default`."),
    count: int | None = option("--count N", "Cast N votes at once. The poll must allow several votes per user."),
    source: Path | None = option("--from FILE", "Cast each line of a CSV or JSONL file of user and value; - is stdin."),
    columns: Columns = None,
    skip: Skip = 0,
    concurrency: Concurrency = 32,
) -> None:
    """Cast a vote, and print the result of the poll. Acts as viewer:U1.

    With --from, -o json prints how many lines succeeded and failed, and jsonl prints the refused
    lines.

    \b
    Examples:
      extcli vote cast lunch 3
      extcli vote cast lunch -5 --as viewer:U7
      extcli vote cast --value 3
      extcli vote cast lunch --from ballots.csv
    """
    if None not in (number, value):
        raise UsageError("give the vote once: as an argument, or with --value")
    choice = value if number is None else number
    one = None if choice is None else str(choice)
    given = value_or_file(one, source, "the vote N", columns=columns, skip=skip)
    session.warn_without_channel(VIEWER, "the vote" if source is None else "each vote", poll)
    if isinstance(given, str):
        service = session.service(VIEWER)
        if count not in (None, 1):
            _check_votes_add_up(service, poll)
        _show_result(session, service, poll, service.perform(vote_cast(int(given), poll=poll, count=count)))
        return
    if count is not None:
        raise UsageError("--count and --from exclude each other", why="each line is one vote")
    from extcli.bulk import input_lines, sender

    ballots = input_lines.read_records(given, "value", columns=columns, skip=skip)

    def show_result() -> None:
        # As JSON, the counts of the lines and the refused lines are the output.
        if session.output.format not in (Format.JSON, Format.JSONL):
            service = session.service(VIEWER)
            try:
                _show_result(session, service, poll, service.probing().get("vote", id=poll))
            except CliError as error:  # the votes are in
                session.output.report(f"the result of poll {visible(poll)} is not shown: {error.what}")

    operation = input_lines.vote_operation(poll)
    sender.send(session, ballots, operation, acts_as=VIEWER, concurrency=concurrency, then=show_result)


def _check_votes_add_up(service: Service, poll: str) -> None:
    """Raise `UsageError` if the poll takes one vote per user: the service would ignore the count (ruling P4)."""
    from extcli.bulk.sender import votes_add_up

    if not votes_add_up(service, poll):
        raise UsageError(
            f"poll {visible(poll)} takes one vote per user, so --count has no effect",
            fix="leave it out, or set --total-votes with `extcli vote edit`",
        )


@command(app, prints=_result_view({}, {}))
def get(session: Session, poll: Poll = "default", watch: Watch = False) -> None:
    """Print the result of a poll. Acts as viewer:U1.

    A table also shows the prompt and the options' texts, and csv the texts. Plain output is
    $columns for each value with votes. The service counts only the values 0 to 63. Votes for other
    values are counted from the vote log, if you may read it and it has at most 10,000 votes.

    \b
    Examples:
      extcli vote get lunch
      extcli vote get lunch --watch
    """
    service = session.service(VIEWER)
    show_live(session, lambda: _show_result(session, service, poll, service.get("vote", id=poll)), watch=watch)


def _show_result(session: Session, service: Service, poll: str, response: Response) -> None:
    """Print a poll with all values that have votes. A table also shows its prompt and options, CSV the options."""
    output, definition, outside = session.output, {}, {}
    if output.format in (Format.TABLE, Format.CSV):
        with suppress(CliError, *SHAPE_ERRORS):  # it has none, or the deployment knows no definitions
            definition = document_of(service.probing().get("vote_config", id=poll))
    if output.format is not Format.JSON:
        with suppress(CliError, *SHAPE_ERRORS):  # the log is not for this caller
            outside = _count_outside(session, poll, document_of(response))
    output.show(response, _result_view(outside, definition))


def _count_outside(session: Session, poll: str, result: Json) -> dict[int, int]:
    """Count the votes for values that the statistics leave out, in the log. Skips a long log."""
    if not _votes_outside(result) or result["stats"]["count"] > _LONGEST_LOG:
        return {}
    backend = session.service(BACKEND).probing()
    votes: Counter[int] = Counter()
    with backend.stream("vote_logs", id=poll, channel_id=session.channel(VIEWER)) as response:
        for vote in stream_items(response.iter_bytes(), "result.item", f"poll {visible(poll)}"):
            if not 0 <= vote["value"] < _COUNTED_VALUES:
                votes[vote["value"]] += vote.get("count", 1)
    return votes


@command(app, prints=_VOTE_LOG)
def logs(
    session: Session,
    poll: Poll = "default",
    since: str | None = option("--since TIME", f"Only votes since this time: {times.FORMS_AGO}."),
    limit: int | None = option("--limit N", "Print at most N votes.", min=0),
) -> None:
    """List each voter's latest vote in all channels, oldest first. Acts as backend.

    Plain output is $columns.

    Example: extcli vote logs lunch -o jsonl > votes.jsonl
    """
    start = None if since is None else times.parse_instant(since, session.now, ago=True)
    with session.service(BACKEND).stream("vote_logs", id=poll, since=start, limit=limit) as response:
        session.output.show_stream(response, "result.item", _VOTE_LOG)


add_rm_command(app, "vote", "poll", argument("POLL", _POLL_HELP, "default"), with_it="its votes, log and definition")
add_list_command(app, "vote", "polls", POLLS)


@command(app)
def config(session: Session, poll: Poll = "default") -> None:
    """Print the definition of a poll and its status. Acts as viewer:U1.

    The status is pending, active or expired. Exits 4 if the poll has no definition.

    Example: extcli vote config lunch
    """
    session.output.show(session.service(VIEWER).get("vote_config", id=poll), views.RECORD)


vote_definition.add_definition_verbs(app)
