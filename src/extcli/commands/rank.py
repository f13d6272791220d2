"""`extcli rank`: rankings of free-text answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from extcli.cli.shared_options import Concurrency, Skip, command, noun
from extcli.errors import UsageError
from extcli.output import views
from extcli.session import BROADCASTER, VIEWER, Session

app = noun("Rankings: one answer per user, counted by text.")

Ranking = Annotated[str, typer.Argument(metavar="ID", help="The ranking's id.")]


@command(app)
def submit(
    session: Session,
    ranking: Ranking = "default",
    key: Annotated[str | None, typer.Option("--key", metavar="TEXT", help="The answer.")] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Submit many: CSV or JSON lines of user and key; - reads standard input."
        ),
    ] = None,
    skip: Skip = 0,
    concurrency: Concurrency = 32,
) -> None:
    """Submit an answer, which replaces the user's earlier one. Acts as viewer:U1.

    \b
    Examples:
      extcli rank submit colour --key blue
      extcli rank submit colour --from answers.csv
    """
    if key is not None and source is None:
        session.output.show(session.service(VIEWER).submit_answer(key, ranking=ranking), views.RECORD)
        return
    if source is None or key is not None:
        raise UsageError("no answer, or several", fix="give either --key TEXT or --from FILE")
    from extcli.bulk import input_lines, operations, sender

    answers = input_lines.records(source, "key", skip=skip)
    sender.send(session, answers, operations.answers(ranking), acts_as=VIEWER, concurrency=concurrency)


@command(app)
def get(
    session: Session,
    ranking: Ranking = "default",
    top: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the first N.")] = None,
) -> None:
    """Print the most frequent answers, at most 100. Acts as broadcaster.

    Plain output is `key<TAB>score`. --top does not affect json, the service's own answer.

    Example: extcli rank get colour --top 10
    """
    session.output.show(session.service(BROADCASTER).read_ranking(ranking), views.ranking(top))


@command(app, loses="ranking {ranking} is deleted, with its answers")
def rm(session: Session, ranking: Ranking = "default") -> None:
    """Delete a ranking and its answers. Acts as broadcaster.

    Example: extcli rank rm colour
    """
    session.output.show(session.service(BROADCASTER).clear_ranking(ranking), views.NOTHING)
    session.output.note(f"deleted ranking {ranking}")
