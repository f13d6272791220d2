"""The request for each line of input, and whether repeating it is harmless."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from extcli import bounded_json
from extcli.api.call import SERVICE, Call
from extcli.api.client import answer_submission, buffer_addition, vote_cast
from extcli.bulk.input_lines import Line
from extcli.errors import UsageError

_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,4000}\s*")
"""Excludes what Python also accepts, such as 1_0 or digits of other scripts, as mistakes in a file of votes."""


@dataclass(frozen=True, slots=True)
class Operation:
    """How to turn each line into a request."""

    call_of: Callable[[Line], Call]
    """Returns the request. Raises `UsageError` for an invalid line."""
    repeatable: str = ""
    """Why it is harmless to repeat a request; empty if it is not."""
    definition: Call | None = None
    """Reads the definition of the poll, in which votes may add up: then repeating is not harmless."""


def votes(poll: str) -> Operation:
    """Cast a vote for each line."""
    return Operation(
        lambda line: vote_cast(_value(line), poll=poll),
        repeatable="a repeated vote replaces the first, unless votes of the poll add up",
        definition=Call("GET", f"{SERVICE}vote_config", {"id": poll}),
    )


def answers(ranking: str) -> Operation:
    """Submit an answer for each line."""
    return Operation(
        lambda line: answer_submission(line.content, ranking=ranking), repeatable="a repeated answer replaces the first"
    )


def additions(buffer: str) -> Operation:
    """Add each line to the buffer, unchanged."""
    return Operation(lambda line: buffer_addition(line.content.encode(), buffer=buffer))


def votes_add_up(status: int, definition: bytes) -> bool:
    """Return whether votes add up in a poll, from the response of `vote_config`; true if the response does not say."""
    if status == 404:
        return False
    try:
        total = bounded_json.decoded(definition)["totalVotesPerUser"]
    except (ValueError, TypeError, KeyError):
        return True
    return bool(status != 200 or total != 1)


def _value(line: Line) -> int:
    text = line.content
    if isinstance(text, str) and not _INTEGER.fullmatch(text):
        raise UsageError(f"not an integer: {text[:20]!r}")
    value: int = int(text) if isinstance(text, str) else text
    return value
