"""`extcli vote`: polls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from extcli.cli import confirm
from extcli.cli.confirm import Yes
from extcli.cli.json_input import read_json
from extcli.cli.shared_options import Concurrency, Skip, command, noun
from extcli.errors import Refused, UsageError
from extcli.output import times, views
from extcli.output.sanitize import visible
from extcli.session import BACKEND, BROADCASTER, VIEWER, Session

if TYPE_CHECKING:
    from extcli.api.client import Service

app = noun("Polls: each user's latest vote counts.")

Poll = Annotated[str, typer.Argument(metavar="POLL", help="The poll's id; `global-…` is one poll for all channels.")]


@command(app)
def cast(
    session: Session,
    poll: Poll = "default",
    value: Annotated[int | None, typer.Option("--value", metavar="N", help="The vote, -99 to 99.")] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", help="Cast N votes at once, if the poll allows it.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Cast many: CSV or JSON lines of user and value; - reads standard input."
        ),
    ] = None,
    skip: Skip = 0,
    concurrency: Concurrency = 32,
) -> None:
    """Cast a vote, and print the result of the poll. Acts as viewer:U1.

    \b
    Examples:
      extcli vote cast --value 3
      extcli vote cast lunch --value -5 --as viewer:U7
      extcli vote cast lunch --from ballots.csv
    """
    if value is not None and source is None:
        session.output.show(session.service(VIEWER).cast_vote(value, poll=poll, count=count), views.POLL)
        return
    if source is None or value is not None:
        raise UsageError("no vote, or several", fix="give either --value N or --from FILE")
    if count is not None:
        raise UsageError("--count and --from exclude each other", why="each line is one vote")
    from extcli.bulk import input_lines, operations, sender

    ballots = input_lines.records(source, "value", skip=skip)
    sender.send(session, ballots, operations.votes(poll), acts_as=VIEWER, concurrency=concurrency)


@command(app)
def get(session: Session, poll: Poll = "default") -> None:
    """Print the result of a poll. Acts as viewer:U1.

    Plain output is `value<TAB>count` for each value with votes.

    Example: extcli vote get lunch
    """
    session.output.show(session.service(VIEWER).read_poll(poll), views.POLL)


@command(app)
def logs(
    session: Session,
    poll: Poll = "default",
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help=f"Only votes from then on: {times.FORMS_AGO}.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, metavar="N", help="At most N entries.")] = None,
) -> None:
    """List each voter's latest vote in all channels, oldest first. Acts as backend.

    Plain output is `identifier<TAB>opaque<TAB>value<TAB>timestamp`.

    Example: extcli vote logs lunch -o jsonl > votes.jsonl
    """
    start = None if since is None else times.instant(since, session.now, ago=True)
    with session.service(BACKEND).read_vote_log(poll, since=start, limit=limit) as answer:
        session.output.show_stream(answer, "result.item", views.VOTE_LOG)


@command(app, loses="poll {poll} is deleted, with its votes, log and definition")
def rm(session: Session, poll: Poll = "default") -> None:
    """Delete a poll with its votes, log and definition. Acts as broadcaster.

    Example: extcli vote rm lunch
    """
    session.output.show(session.service(BROADCASTER).clear_poll(poll), views.NOTHING)
    session.output.note(f"deleted poll {poll}")


@command(app)
def define(
    session: Session,
    poll: Annotated[str, typer.Argument(metavar="POLL", help="The poll's id.")],
    prompt: Annotated[str | None, typer.Option(help="The question.")] = None,
    option: Annotated[list[str] | None, typer.Option("--option", metavar="TEXT", help="An answer. Repeatable.")] = None,
    options: Annotated[
        str | None, typer.Option("--options", metavar="A,B,C", help="All answers, separated by commas.")
    ] = None,
    starts_at: Annotated[str | None, typer.Option(metavar="TIME", help=f"When it opens: {times.FORMS}.")] = None,
    starts_in: Annotated[str | None, typer.Option(metavar="DURATION", help="How long until it opens.")] = None,
    ends_at: Annotated[str | None, typer.Option(metavar="TIME", help="When it closes, in the same forms.")] = None,
    ends_in: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long until it closes, for example 90s.")
    ] = None,
    user_data: Annotated[str | None, typer.Option(metavar="JSON", help="Your own data: JSON, @file or -.")] = None,
    total_votes: Annotated[
        int | None, typer.Option(metavar="N", help="The most votes per user; more than 1 add up.")
    ] = None,
    votes_per_option: Annotated[
        int | None, typer.Option(metavar="N", help="The most votes per user and answer.")
    ] = None,
    distinct_options: Annotated[int | None, typer.Option(metavar="N", help="The most answers per user.")] = None,
    user_id_voting: Annotated[
        bool, typer.Option("--user-id-voting", help="Only users who share their identity can vote.")
    ] = False,
    disabled: Annotated[bool, typer.Option("--disabled", help="Refuse votes.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the current definition, and change nothing.")] = False,
    yes: Yes = False,
) -> None:
    """Define a poll: question, answers, times and limits. Existing votes stay. Acts as broadcaster.

    \b
    Examples:
      extcli vote define lunch --prompt "Which?" --options "A,B" --ends-in 90s
      extcli vote define lunch --show
    """
    if option and options:
        raise UsageError("--option and --options exclude each other")
    answers = option or ([text.strip() for text in options.split(",")] if options else None)
    config: dict[str, Any] = {
        "prompt": prompt,
        "options": answers,
        "startsAt": starts_at and _seconds(times.instant(starts_at, session.now)),
        "startsIn": starts_in and _seconds(times.duration(starts_in)),
        "endsAt": ends_at and _seconds(times.instant(ends_at, session.now)),
        "endsIn": ends_in and _seconds(times.duration(ends_in)),
        "userData": user_data and read_json(user_data, "--user-data"),
        "totalVotesPerUser": total_votes,
        "votesPerOption": votes_per_option,
        "distinctOptionsPerUser": distinct_options,
        "userIDVoting": user_id_voting or None,
        "disabled": disabled or None,
        "global": poll.startswith("global-") or None,
    }
    service = session.service(BROADCASTER)
    if show:
        session.output.show(service.read_poll_definition(poll), views.RECORD)
        return
    if not yes and confirm.in_production(session) and _is_defined(service, poll):
        confirm.ask(session, [f"the definition of poll {visible(poll)} is replaced"], "Continue?")
    given = {name: value for name, value in config.items() if value is not None}
    session.output.show(service.define_poll(poll, given), views.NOTHING)
    session.output.note(f"defined poll {poll}")


def _is_defined(service: Service, poll: str) -> bool:
    try:
        service.read_poll_definition(poll)
    except Refused as error:
        if error.status != 404:
            raise
        return False
    return True


def _seconds(milliseconds: int) -> int:
    """Return seconds, rounded up: 0 would mean no limit."""
    return -(-milliseconds // 1000)
