"""`extcli rank`: rankings of free-text answers. `extcli accumulate`: buffers of small JSON documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from extcli.cli import Watch, argument, command, noun, option, show_live
from extcli.cli.json_input import is_key_value_pair, read_document
from extcli.cli.option_groups import Columns, Concurrency, Skip, refuse_options_without_file, value_or_file
from extcli.commands.listing import BUFFERS, RANKINGS, add_list_command, add_rm_command
from extcli.errors import UsageError
from extcli.output import times, views
from extcli.session import BROADCASTER, VIEWER, Session

app = noun("Rankings: each user submits one text; equal texts are counted.")
accumulate_app = noun("Buffers: users add small JSON documents, a backend reads them.")

Ranking = Annotated[str, argument("ID", "The ranking's id.")]


@command(app)
def submit(
    session: Session,
    ranking: Ranking = "default",
    key: str | None = option("--key TEXT", "The text of the answer."),
    source: Path | None = option("--from FILE", "Submit each line of a CSV or JSONL file of user and key; - is stdin."),
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
    given = value_or_file(key, source, "--key TEXT", columns=columns, skip=skip)
    session.warn_without_channel(VIEWER, "the answer" if source is None else "each answer", ranking)
    if isinstance(given, str):
        session.output.show(session.service(VIEWER).post("rank", {"key": given}, id=ranking), views.RECORD)
        return
    from extcli.bulk import input_lines, sender

    answers = input_lines.read_records(given, "key", columns=columns, skip=skip)
    sender.send(session, answers, input_lines.answer_operation(ranking), acts_as=VIEWER, concurrency=concurrency)


@command(app, prints=views.ranking_view(None))
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
    show_live(
        session, lambda: session.output.show(service.get("rank", id=ranking), views.ranking_view(top)), watch=watch
    )


add_rm_command(app, "rank", "ranking", argument("ID", "The ranking's id.", "default"), with_it="its answers")
add_list_command(app, "rank", "rankings", RANKINGS)


# Buffers


_DEFAULT = "default"
_DEFAULT_PARALLEL = 32
_USAGE = """give [ID] and JSON such as '{"stars": 5}', or members such as stars=5, or --from FILE"""


@command(accumulate_app)
def add(
    session: Session,
    words: list[str] | None = argument("[ID] JSON|-|@FILE|KEY=JSON", "The buffer's id, then the document.", None),
    source: Path | None = option("--from FILE", "Add many documents, one JSON document per line; - is standard input."),
    user_field: str | None = option("--user-field NAME", "With --from: the member with the user id, sent too."),
    skip: Skip = 0,
    concurrency: int | None = option("--concurrency N", "Parallel requests, with --user-field [32].", min=1, max=1024),
) -> None:
    """Add a JSON document of less than 256 bytes to a buffer. Acts as viewer:U1.

    \b
    Examples:
      extcli accumulate add ratings '{"stars": 5}'
      extcli accumulate add ratings stars=5 comment="very good"
      extcli accumulate add ratings --from ratings.jsonl --user-field user
    """
    session.warn_without_channel(VIEWER, "the document" if source is None else "each document", "")
    given = list(words or [])
    if source is None:
        refuse_options_without_file({"--user-field": user_field, "--skip": skip, "--concurrency": concurrency})
        buffer, document = _buffer_and_document(given)
        session.output.done(session.service(VIEWER).post("accumulate", document, id=buffer), "added")
        return
    if len(given) > 1:
        raise UsageError("give exactly one document", fix=_USAGE)
    from extcli.bulk import input_lines, sender

    documents = input_lines.read_documents(source, user_field, skip=skip)
    buffer = given[0] if given else _DEFAULT
    parallel = 1 if user_field is None else concurrency or _DEFAULT_PARALLEL
    sender.send(session, documents, input_lines.entry_operation(buffer), acts_as=VIEWER, concurrency=parallel)


def _buffer_and_document(given: list[str]) -> tuple[str, Any]:
    """Return the buffer's id and the document. Raises `UsageError`."""
    has_id = len(given) > 1 and not all(map(is_key_value_pair, given[:2]))
    buffer, words = (given[0], given[1:]) if has_id else (_DEFAULT, given)
    if len(words) != 1 and not (words and all(map(is_key_value_pair, words))):
        raise UsageError("give exactly one document", fix=_USAGE)
    return buffer, read_document(words, "the document")


@command(accumulate_app, "get", prints=views.BUFFER)
def get_buffer(
    session: Session,
    buffer: str = argument("ID", "The buffer's id.", "default"),
    since: str | None = option("--since --start TIME", f"Only entries since this time: {times.FORMS_AGO}."),
) -> None:
    """Read a buffer, newest first. Acts as broadcaster; --as backend reads all channels.

    Plain output is $columns. A duration counts back from the emulator's clock, or from this
    machine's clock for other services.

    \b
    Examples:
      extcli accumulate get ratings --since 5m
      extcli accumulate get ratings --as backend -o jsonl
    """
    earliest = 0 if since is None else times.parse_instant(since, session.now, ago=True)
    with session.service(BROADCASTER).stream("accumulate", id=buffer, start=earliest) as response:
        session.output.show_stream(response, "data.item", views.BUFFER)


add_list_command(accumulate_app, "accumulate", "buffers", BUFFERS)
