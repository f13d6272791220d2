"""What `vote list`, `rank list`, `accumulate list` and `contents` share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from extcli.errors import ErrorAnswer, UnexpectedAnswer
from extcli.output.format import Format
from extcli.output.listing_views import VIEWS
from extcli.output.printer import SHAPE_ERRORS, Answer, View
from extcli.session import Session

_END = "0"
_COUNTED_PAGES = 20


def show_all(session: Session, read: Callable[[str], Answer], member: str, view: View | None = None) -> None:
    """Print all pages: as one table, or else each as it arrives. `read` returns the page at a cursor."""
    view = view or VIEWS[member]
    cursor, found = _END, []
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
        if cursor == _END:
            break
    if as_one:
        session.output.show_value({member: found}, view)


def count_channels(read: Callable[[str], Answer], member: str, name: str) -> int | None:
    """Return how many channels have a poll or ranking of this id; `None` if there is no listing, or it is too long."""
    cursor, channels = _END, set[str]()
    for _ in range(_COUNTED_PAGES):
        try:
            document = json.loads(read(cursor).content)
            cursor = str(document["next"])
            channels.update(each["channel_id"] for each in document[member] if each["id"] == name)
        except (ErrorAnswer, *SHAPE_ERRORS):
            return None
        if cursor == _END:
            return len(channels - {""})
    return None
