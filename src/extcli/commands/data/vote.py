"""`extcli vote`: polls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from emulator.contract.limits import HIGHEST, LOWEST
from emulator.contract.shell import quoted
from extcli.cli import Watch, argument, command, noun, option, repeat
from extcli.cli.bulk_options import Columns, Concurrency, Skip, one_or_file
from extcli.cli.confirm import Yes
from extcli.commands.data import vote_definition
from extcli.commands.data.listing import POLLS, AllChannels, add_list, delete
from extcli.errors import CliError, Refused, UsageError, shortened
from extcli.output import poll_views, times, views
from extcli.output.format import Format
from extcli.output.sanitize import visible
from extcli.reading.shapes import SHAPE_ERRORS, document_of
from extcli.reading.streams import items
from extcli.session import BACKEND, VIEWER, Session

if TYPE_CHECKING:
    from extcli.api.client import Service
    from extcli.api.http import Response

app = noun("Polls: each user's latest vote counts.")

_INTEGER = re.compile(r"[+-]?[0-9]+")
_MOST_CHARACTERS = 19
"""Of a value that is sent, so that the service says what is wrong with it."""
_MAX_LOG = 10_000
"""Votes that `get` reads one by one."""

Poll = Annotated[str, argument("POLL", "The poll's id; `global-…` is one poll for all channels.")]


@command(app)
def cast(
    session: Session,
    poll: Poll = "default",
    number: str | None = argument("N", f"The vote, {LOWEST} to {HIGHEST}; options have the numbers from 0.", None),
    value: str | None = option("--value N", "The vote, as an option: for the poll `default`."),
    count: int | None = option("--count N", "Cast N votes at once. The poll must allow several votes per user."),
    source: Path | None = option(
        "--from FILE", "Cast many votes from a file: CSV or JSON lines with user and value; - reads standard input."
    ),
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
    given = one_or_file(value if number is None else number, source, "the vote N", columns=columns, skip=skip)
    session.warn_without_channel(VIEWER, "the vote" if source is None else "each vote", poll)
    if isinstance(given, str):
        service, choice = session.service(VIEWER), _number(given, poll)
        if count not in (None, 1):
            _check_votes_add_up(service, poll)
        _show(session, service, poll, service.cast_vote(choice, poll=poll, count=count))
        return
    if count is not None:
        raise UsageError("--count and --from exclude each other", why="each line is one vote")
    from extcli.bulk import input_lines, operations, sender

    ballots = input_lines.records(given, "value", columns=columns, skip=skip)

    def show_result() -> None:
        # As JSON, the counts of the lines and the refused lines are the output.
        if session.output.format not in (Format.JSON, Format.JSONL):
            service = session.service(VIEWER)
            try:
                _show(session, service, poll, service.probing().read_poll(poll))
            except CliError as error:  # the votes are in
                session.output.report(f"the result of poll {visible(poll)} is not shown: {error.what}")

    sender.send(session, ballots, operations.votes(poll), acts_as=VIEWER, concurrency=concurrency, then=show_result)


def _number(value: str, poll: str) -> int:
    """Return the value of a vote. Raises `UsageError` if it is not a number, such as the text of an option."""
    allowed = f"a vote is a number from {LOWEST} to {HIGHEST}"
    if not _INTEGER.fullmatch(value):
        raise UsageError(
            f"--value: {shortened(value, 40)!r} is not a whole number",
            why=f"{allowed}; the options of a poll have the numbers from 0",
            fix=f"`extcli vote config {quoted(poll)}` lists its options",
        )
    if len(value) > _MOST_CHARACTERS:
        raise UsageError(f"--value: {shortened(value, 40)!r} has too many digits", why=allowed)
    return int(value)


def _check_votes_add_up(service: Service, poll: str) -> None:
    """Raise `UsageError` if the poll takes one vote per user: the service would ignore the count (ruling P4)."""
    from extcli.bulk.operations import votes_add_up

    try:
        adds_up = votes_add_up(200, service.probing().read_poll_definition(poll).content)
    except Refused as error:
        adds_up = error.status != 404
    if not adds_up:
        raise UsageError(
            f"poll {visible(poll)} takes one vote per user, so --count has no effect",
            fix="leave it out, or give the poll --total-votes with `extcli vote define` or `edit`",
        )


@command(app, prints=poll_views.poll({}, {}))
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
    repeat(session, lambda: _show(session, service, poll, service.read_poll(poll)), watch=watch)


def _show(session: Session, service: Service, poll: str, response: Response) -> None:
    """Print a poll with all values that have votes. A table also shows its prompt and options, CSV the options."""
    output, definition, outside = session.output, {}, {}
    if output.format in (Format.TABLE, Format.CSV):
        with suppress(CliError, *SHAPE_ERRORS):  # it has none, or the deployment knows no definitions
            definition = document_of(service.probing().read_poll_definition(poll))
    if output.format is not Format.JSON:
        with suppress(CliError, *SHAPE_ERRORS):  # the log is not for this caller
            outside = _votes_outside(session, poll, document_of(response))
    output.show(response, poll_views.poll(outside, definition))
    if output.format not in (Format.TABLE, Format.JSON) and not output.watcher:
        with suppress(*SHAPE_ERRORS):
            if (unknown := poll_views.votes_outside(document_of(response)) - sum(outside.values())) > 0:
                votes = "vote is" if unknown == 1 else "votes are"
                log = f"`extcli vote logs {quoted(poll)}`"
                output.report(f"{unknown:,} {votes} outside {poll_views.COUNTED}: {log} lists all")


def _votes_outside(session: Session, poll: str, result: Mapping[str, Any]) -> dict[int, int]:
    """Count the votes for values that the statistics leave out, in the log. Skips a long log."""
    if not poll_views.votes_outside(result) or result["stats"]["count"] > _MAX_LOG:
        return {}
    with session.service(BACKEND).probing().read_vote_log(poll, channel=session.channel(VIEWER)) as response:
        return poll_views.count_outside(items(response.iter_bytes(), "result.item", f"poll {visible(poll)}"))


@command(app, prints=poll_views.VOTE_LOG)
def logs(
    session: Session,
    poll: Poll = "default",
    since: str | None = option("--since TIME", f"Only votes from this time on: {times.FORMS_AGO}."),
    limit: int | None = option("--limit N", "Print at most N votes.", min=0),
) -> None:
    """List each voter's latest vote in all channels, oldest first. Acts as backend.

    Plain output is $columns.

    Example: extcli vote logs lunch -o jsonl > votes.jsonl
    """
    start = None if since is None else times.instant(since, session.now, ago=True)
    with session.service(BACKEND).read_vote_log(poll, since=start, limit=limit) as response:
        session.output.show_stream(response, "result.item", poll_views.VOTE_LOG)


@command(app)
def rm(session: Session, poll: Poll = "default", all_channels: AllChannels = False, yes: Yes = False) -> None:
    """Delete a poll with its votes, log and definition. Acts as broadcaster, or backend for `global-…`.

    Backend and admin without --channel delete it in all channels, which needs --all-channels.

    \b
    Examples:
      extcli vote rm lunch
      extcli vote rm lunch --all-channels
    """
    delete(
        session,
        "poll",
        poll,
        with_it="its votes, log and definition",
        clear=lambda service: service.clear_poll(poll),
        exists=lambda service: vote_definition.exists(service, poll),
        all_channels=all_channels,
        yes=yes,
    )


add_list(app, "vote", "polls", POLLS)


@command(app)
def config(session: Session, poll: Poll = "default") -> None:
    """Print the definition of a poll and its status. Acts as viewer:U1.

    The status is pending, active or expired. Exits 4 if the poll has no definition.

    Example: extcli vote config lunch
    """
    session.output.show(session.service(VIEWER).read_poll_definition(poll), views.RECORD)


vote_definition.add_definition_verbs(app)
