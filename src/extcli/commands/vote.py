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

app = noun("Polls: one vote per user, the latest counts.")

Poll = Annotated[str, typer.Argument(metavar="POLL", help="The poll's id; `global-…` is open to all channels.")]


@command(app)
def cast(
    session: Session,
    poll: Poll = "default",
    value: Annotated[
        int | None, typer.Option("--value", metavar="N", help="The vote, -99 to 99.", show_default=False)
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--count", metavar="N", help="So many at once, where the poll allows it.", show_default=False),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Many votes: CSV or JSON lines of user and value; - is standard input.",
            show_default=False,
        ),
    ] = None,
    skip: Skip = 0,
    concurrency: Concurrency = 32,
) -> None:
    """Vote, and show the poll as it now stands. Acts as viewer:U1.

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
        raise UsageError("nothing to vote, or too much", fix="give either --value N or --from FILE")
    if count is not None:
        raise UsageError("--count and --from exclude each other", why="each line is one vote of its user")
    from extcli.bulk import input_lines, operations, sender

    ballots = input_lines.records(source, "value", skip=skip)
    sender.send(session, ballots, operations.votes(poll), acts_as=VIEWER, concurrency=concurrency)


@command(app)
def get(session: Session, poll: Poll = "default") -> None:
    """Show how a poll stands. Acts as viewer:U1.

    Plain output is `value<TAB>count` for each value that has votes.

    Example: extcli vote get lunch
    """
    session.output.show(session.service(VIEWER).read_poll(poll), views.POLL)


@command(app)
def logs(
    session: Session,
    poll: Poll = "default",
    since: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT", help="Only votes received from then on: Unix ms or ISO 8601.", show_default=False
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, metavar="N", help="At most so many.", show_default=False)] = None,
) -> None:
    """List every voter's latest vote, oldest first. Acts as backend, which sees all channels.

    Plain output is `identifier<TAB>opaque<TAB>value<TAB>timestamp`.

    Example: extcli vote logs lunch -o jsonl > votes.jsonl
    """
    start = None if since is None else times.instant(since)
    with session.service(BACKEND).read_vote_log(poll, since=start, limit=limit) as answer:
        session.output.show_stream(answer, "result.item", views.VOTE_LOG)


@command(app, loses="poll {poll} ends, with its votes, its log and its definition")
def rm(session: Session, poll: Poll = "default") -> None:
    """End a poll: votes, log and definition go. Acts as broadcaster.

    Example: extcli vote rm lunch
    """
    session.output.show(session.service(BROADCASTER).clear_poll(poll), views.NOTHING)
    session.output.note(f"poll {poll} is gone")


@command(app)
def define(
    session: Session,
    poll: Annotated[str, typer.Argument(metavar="POLL", help="The poll's id.")],
    prompt: Annotated[str | None, typer.Option(help="The question.", show_default=False)] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="TEXT", help="An answer; repeat it.", show_default=False)
    ] = None,
    options: Annotated[
        str | None, typer.Option("--options", metavar="A,B,C", help="All answers at once.", show_default=False)
    ] = None,
    starts_at: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="Opens then: Unix ms or ISO 8601.", show_default=False)
    ] = None,
    starts_in: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Opens so much later.", show_default=False)
    ] = None,
    ends_at: Annotated[str | None, typer.Option(metavar="INSTANT", help="Closes then.", show_default=False)] = None,
    ends_in: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Closes so much later, like 90s.", show_default=False)
    ] = None,
    user_data: Annotated[
        str | None, typer.Option(metavar="JSON", help="Anything of yours; - or @file too.", show_default=False)
    ] = None,
    total_votes: Annotated[
        int | None, typer.Option(metavar="N", help="Votes a user has in all.", show_default=False)
    ] = None,
    votes_per_option: Annotated[
        int | None, typer.Option(metavar="N", help="Votes a user may give one answer.", show_default=False)
    ] = None,
    distinct_options: Annotated[
        int | None, typer.Option(metavar="N", help="Answers a user may choose.", show_default=False)
    ] = None,
    user_id_voting: Annotated[bool, typer.Option("--user-id-voting", help="Only users who share their id.")] = False,
    disabled: Annotated[bool, typer.Option("--disabled", help="Take no votes for now.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the definition that is there; change nothing.")] = False,
    yes: Yes = False,
) -> None:
    """Create a poll with a question and answers; existing votes stay. Acts as broadcaster.

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
        "startsAt": starts_at and times.instant(starts_at) // 1000,
        "startsIn": starts_in and _whole_seconds(starts_in),
        "endsAt": ends_at and times.instant(ends_at) // 1000,
        "endsIn": ends_in and _whole_seconds(ends_in),
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
        confirm.ask(session, [f"poll {visible(poll)} has a definition, which is replaced"], "Go on?")
    given = {name: value for name, value in config.items() if value is not None}
    session.output.show(service.define_poll(poll, given), views.NOTHING)
    session.output.note(f"poll {poll} is defined")


def _is_defined(service: Service, poll: str) -> bool:
    try:
        service.read_poll_definition(poll)
    except Refused as error:
        if error.status != 404:
            raise
        return False
    return True


def _whole_seconds(duration: str) -> int:
    """Rounded up: half a second must not become 0, which is no end at all."""
    return -(-times.duration(duration) // 1000)
