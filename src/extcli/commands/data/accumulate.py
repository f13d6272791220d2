"""`extcli accumulate`: buffers of small JSON documents."""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path

from extcli.api.call import encoded
from extcli.cli import argument, command, noun, option
from extcli.cli.bulk_options import Skip, refuse_without_file
from extcli.cli.json_input import read_bytes, read_pairs
from extcli.commands.data.listing import BUFFERS, add_list
from extcli.errors import UsageError
from extcli.output import times, views
from extcli.reading.shapes import not_json
from extcli.session import BROADCASTER, VIEWER, Session

app = noun("Buffers: users add small JSON documents, a backend reads them.")


DEFAULT = "default"
_PARALLEL = 32
_USAGE = """give [ID] and JSON such as '{"stars": 5}', or members such as stars=5, or --from FILE"""


@command(app)
def add(
    session: Session,
    words: list[str] | None = argument(
        "[ID] JSON|-|@FILE|KEY=JSON", "The buffer's id, then the document as JSON or as KEY=VALUE members.", None
    ),
    source: Path | None = option(
        "--from FILE", "Add many documents from a file, one JSON document per line; - reads standard input."
    ),
    user_field: str | None = option(
        "--user-field NAME", "With --from: the member of each document that names its user. The member is also sent."
    ),
    skip: Skip = 0,
    concurrency: int | None = option(
        "--concurrency N", "With --user-field: the number of parallel requests. [default: 32]", min=1, max=1024
    ),
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
        refuse_without_file({"--user-field": user_field, "--skip": skip, "--concurrency": concurrency})
        buffer, content = _document(given)
        session.output.show(session.service(VIEWER).add_to_buffer(content, buffer=buffer), views.NOTHING)
        session.output.note("added")
        return
    if len(given) > 1:
        raise UsageError("no document, or several", fix=_USAGE)
    from extcli.bulk import input_lines, operations, sender

    documents = input_lines.documents(source, user_field, skip=skip)
    buffer = given[0] if given else DEFAULT
    if concurrency and user_field is None:
        session.output.report("--concurrency has no effect without --user-field: the documents are added in order")
    parallel = 1 if user_field is None else concurrency or _PARALLEL
    sender.send(session, documents, operations.additions(buffer), acts_as=VIEWER, concurrency=parallel)


def _document(given: list[str]) -> tuple[str, bytes]:
    """Return the buffer's id and the JSON, which is sent as it is written. Raises `UsageError`."""
    pairs = list(takewhile(lambda word: "=" in word and word[0] not in '{["@=', reversed(given)))[::-1]
    rest = given[: len(given) - len(pairs)]
    if pairs and len(rest) <= 1:
        return (rest or [DEFAULT])[0], encoded(read_pairs(pairs))
    if pairs or not 1 <= len(rest) <= 2:
        raise UsageError("no document, or several", fix=_USAGE)
    content = read_bytes(rest[-1])
    try:
        json.loads(content)
    except (ValueError, RecursionError) as error:
        raise not_json("the document", error, fix=_USAGE) from None
    return (rest if len(rest) == 2 else [DEFAULT])[0], content


@command(app, prints=views.BUFFER)
def get(
    session: Session,
    buffer: str = argument("ID", "The buffer's id.", "default"),
    since: str | None = option("--since --start TIME", f"Only entries from this time on: {times.FORMS_AGO}."),
) -> None:
    """Read a buffer, newest first. Acts as broadcaster; --as backend reads all channels.

    Plain output is $columns. A duration counts back from the emulator's clock, or from this
    machine's clock for other services.

    \b
    Examples:
      extcli accumulate get ratings --since 5m
      extcli accumulate get ratings --as backend -o jsonl
    """
    earliest = 0 if since is None else times.instant(since, session.now, ago=True)
    with session.service(BROADCASTER).read_buffer(buffer, start=earliest) as response:
        session.output.show_stream(response, "data.item", views.BUFFER)


add_list(app, "accumulate", "buffers", BUFFERS)
