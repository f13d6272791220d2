"""What `vote list`, `rank list` and `accumulate list` share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from extcli.errors import UnexpectedAnswer
from extcli.output.format import Format
from extcli.output.listing_views import VIEWS
from extcli.output.printer import SHAPE_ERRORS, Answer
from extcli.session import Session

_END = "0"


def show_all(session: Session, read: Callable[[str], Answer], member: str) -> None:
    """Print all pages: as one table, or else each as it arrives. `read` returns the page at a cursor."""
    view = VIEWS[member]
    cursor, found = _END, []
    while True:
        answer = read(cursor)
        try:
            document: dict[str, Any] = json.loads(answer.content)
            cursor = str(document["next"])
            found += document[member]
        except SHAPE_ERRORS as error:
            raise UnexpectedAnswer(answer) from error
        if session.output.format is not Format.TABLE:
            session.output.show(answer, view)
            found.clear()
        if cursor == _END:
            break
    if session.output.format is Format.TABLE:
        session.output.show_value({member: found}, view)
