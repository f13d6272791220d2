"""`extcli rank`: rankings of free-text answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from extcli.cli import Watch, argument, command, noun, option, repeat
from extcli.cli.bulk_options import Columns, Concurrency, Skip, one_or_file
from extcli.cli.confirm import Yes
from extcli.commands.data.listing import RANKINGS, AllChannels, add_list, delete
from extcli.output import views
from extcli.reading.shapes import document_of
from extcli.session import BROADCASTER, VIEWER, Session

app = noun("Rankings: one answer per user, counted by text.")

Ranking = Annotated[str, argument("ID", "The ranking's id.")]


@command(app)
def submit(
    session: Session,
    ranking: Ranking = "default",
    key: str | None = option("--key TEXT", "The text of the answer."),
    source: Path | None = option(
        "--from FILE", "Submit many answers from a file: CSV or JSON lines with user and key; - reads standard input."
    ),
    columns: Columns = None,
    skip: Skip = 0,
    concurrency: Concurrency = 32,
) -> None:
    """Submit an answer, which replaces the user's earlier one. Acts as viewer:U1.

    \b
    Examples:
      extcli rank submit colour --key blue
      extcli rank submit colour --from answers.csv
    """
    given = one_or_file(key, source, "--key TEXT", columns=columns, skip=skip)
    session.warn_without_channel(VIEWER, "the answer" if source is None else "each answer", ranking)
    if isinstance(given, str):
        session.output.show(session.service(VIEWER).submit_answer(given, ranking=ranking), views.RECORD)
        return
    from extcli.bulk import input_lines, operations, sender

    answers = input_lines.records(given, "key", columns=columns, skip=skip)
    sender.send(session, answers, operations.answers(ranking), acts_as=VIEWER, concurrency=concurrency)


@command(app, prints=views.ranking(None))
def get(
    session: Session,
    ranking: Ranking = "default",
    top: int | None = option("--top N", "Print only the N most frequent answers.", min=1),
    watch: Watch = False,
) -> None:
    """Print the most frequent answers, at most 100. Acts as broadcaster.

    Plain output is $columns. --top does not affect json, which is the service's complete response.

    Example: extcli rank get colour --top 10
    """
    service = session.service(BROADCASTER)
    repeat(session, lambda: session.output.show(service.read_ranking(ranking), views.ranking(top)), watch=watch)


@command(app)
def rm(session: Session, ranking: Ranking = "default", all_channels: AllChannels = False, yes: Yes = False) -> None:
    """Delete a ranking and its answers. Acts as broadcaster, or backend for `global-…`.

    Backend and admin without --channel delete it in all channels, which needs --all-channels.

    \b
    Examples:
      extcli rank rm colour
      extcli rank rm colour --all-channels
    """
    delete(
        session,
        "ranking",
        ranking,
        with_it="its answers",
        clear=lambda service: service.clear_ranking(ranking),
        exists=lambda service: bool(document_of(service.read_ranking(ranking), {"data": list})["data"]),
        all_channels=all_channels,
        yes=yes,
    )


add_list(app, "rank", "rankings", RANKINGS)
