"""What `vote list`, `rank list`, `accumulate list` and `contents` share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from extcli.errors import UnexpectedAnswer
from extcli.output.format import Format
from extcli.output.listing_views import VIEWS
from extcli.output.printer import SHAPE_ERRORS, Answer, View
from extcli.session import Session

END = "0"
"""The cursor of the first page, and `next` of the last."""


def show_all(session: Session, read: Callable[[str], Answer], member: str, view: View | None = None) -> None:
    """Print all pages: as one table, or else each as it arrives. `read` returns the page at a cursor."""
    view = view or VIEWS[member]
    cursor, found = END, []
    as_one = session.output.format is Format.TABLE or session.output.query is not None
    while True:
        answer = read(cursor)
        try:
            document: dict[str, Any] = json.loads(answer.content)
            cursor = str(document["next"])
            found += document[member]
        except SHAPE_ERRORS as error:
            raise UnexpectedAnswer(answer) from error
        if not as_one:
            session.output.show(answer, view)
            found.clear()
        if cursor == END:
            break
    if as_one:
        session.output.show_value({member: found}, view)
