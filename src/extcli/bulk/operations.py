"""What one line of many asks the service for, and whether it may be asked for twice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from extcli.api.client import SERVICE, Call, answer_submission, buffer_addition, vote_cast
from extcli.bulk.input_lines import Line
from extcli.errors import UsageError

_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,4000}\s*")
"""What Python takes for an integer besides, as 1_0 or digits of other scripts, is a slip in a file of votes."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What is done for each line of an input."""

    call_of: Callable[[Line], Call]
    """Raises `UsageError` for a line that asks for nothing."""
    again: str = ""
    """Why it does no harm to send a line again that may have been done; empty where it does harm."""
    definition: Call | None = None
    """What tells whether that is so here: a poll may have been defined so that its votes add up."""


def votes(poll: str) -> Operation:
    """A vote for each line."""
    return Operation(
        lambda line: vote_cast(_value(line), poll=poll),
        again="a vote that comes again replaces itself, unless the poll lets votes add up",
        definition=Call("GET", f"{SERVICE}vote_config", {"id": poll}),
    )


def answers(ranking: str) -> Operation:
    """An answer for each line."""
    return Operation(
        lambda line: answer_submission(line.content, ranking=ranking),
        again="an answer that comes again replaces itself",
    )


def blobs(buffer: str) -> Operation:
    """A blob for each line, as it stands there."""
    return Operation(lambda line: buffer_addition(line.content.encode(), buffer=buffer))


def lets_votes_add_up(status: int, definition: bytes) -> bool:
    """What the answer of `vote_config` says; who is told neither yes nor no has to expect the worse."""
    if status == 404:
        return False
    try:
        total = json.loads(definition)["totalVotesPerUser"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return True
    return bool(status != 200 or total != 1)


def _value(line: Line) -> int:
    text = line.content
    if isinstance(text, str) and not _INTEGER.fullmatch(text):
        raise UsageError(f"not an integer: {text[:20]!r}")
    value: int = int(text) if isinstance(text, str) else text
    return value
