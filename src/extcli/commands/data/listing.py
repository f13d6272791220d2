"""What `vote list`, `rank list`, `accumulate list` and `contents` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from extcli.errors import TooLarge, UnexpectedAnswer, shortened
from extcli.output.columns import Column, grouped, instant, listing, shown
from extcli.output.format import Format
from extcli.output.printer import Answer, View
from extcli.reading.shapes import document_of
from extcli.reading.streams import LARGEST_WHOLE
from extcli.session import Session

END = "0"
"""The cursor of the first page, and `next` of the last."""


def _status(poll: dict[str, Any]) -> str:
    """Return the status of a poll, which refuses votes if it is disabled."""
    return f"{poll.get('status', '')}{', disabled' if poll.get('disabled') else ''}"


def _listing(member: str, counted: str, latest: str, *own: Column) -> View:
    return listing(
        member,
        Column("id", text=shown, folds=True),
        Column("channel", "channel_id", text=shown, folds=True),
        Column(counted, "count", text=grouped, right=True),
        *own,
        Column(latest, "latest", "latest (UTC)", instant),
        else_shown=f"no {member}",
    )


POLLS = _listing("polls", "votes", "latest vote", Column("status", _status))
RANKINGS = _listing("rankings", "answers", "latest answer")
BUFFERS = _listing("buffers", "entries", "latest entry")


def show_all(session: Session, read: Callable[[str], Answer], member: str, view: View) -> None:
    """Print all pages: as one table or JSON document, or else each as it arrives. `read` returns the page at a cursor.

    A list of one page is printed as JSON byte for byte.
    """
    cursor, found, seen = END, [], set[str]()
    size = 0
    as_one = session.output.format in (Format.TABLE, Format.JSON) or session.output.query is not None
    while True:
        answer = read(cursor)
        document = document_of(answer, {member: [dict], "next": str})
        size += len(answer.content)
        is_whole = cursor == document["next"] == END
        cursor = document["next"]
        check_progress(cursor, seen, answer)
        if as_one and size > LARGEST_WHOLE:
            raise TooLarge(f"the list of {answer.request.url.path}", LARGEST_WHOLE)
        found += document[member]
        if not as_one or is_whole:
            session.output.show(answer, view)
            found.clear()
        if cursor == END:
            break
    if as_one and not is_whole:
        session.output.show_value({**document, member: found}, view, of=answer)


def check_progress(cursor: str, seen: set[str], answer: Answer) -> None:
    """Raise `UnexpectedAnswer` for a page that leads back to an earlier one; else add its cursor to those seen."""
    if cursor in seen and cursor != END:
        raise UnexpectedAnswer(answer, f"next must be another cursor, not {shortened(cursor, 40)!r}")
    seen.add(cursor)
