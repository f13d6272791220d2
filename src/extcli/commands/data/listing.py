"""What `vote list`, `rank list`, `accumulate list` and `contents` share."""

from __future__ import annotations

from collections.abc import Callable

from extcli.errors import TooLarge, UnexpectedAnswer, shortened
from extcli.output.format import Format
from extcli.output.listing_views import VIEWS
from extcli.output.printer import Answer, View
from extcli.reading.shapes import document_of
from extcli.reading.streams import LARGEST_WHOLE
from extcli.session import Session

END = "0"
"""The cursor of the first page, and `next` of the last."""


def show_all(session: Session, read: Callable[[str], Answer], member: str, view: View | None = None) -> None:
    """Print all pages: as one table or JSON document, or else each as it arrives. `read` returns the page at a cursor.

    A list of one page is printed as JSON byte for byte.
    """
    view = view or VIEWS[member]
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
