"""Reads the field, what it held and what was needed from the detail of an error. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Facts(NamedTuple):
    """What a detail says about a value. Empty texts are unknown."""

    field: str = ""
    held: str = ""
    needed: str = ""


_FIELD: Final = re.compile(r"(?P<field>[\w.$-]+(?:\[[^\]]*\][\w.]*)*(?:, \w+)*): (?P<problem>.+)", re.DOTALL)
_PROBLEMS: Final = tuple(
    (re.compile(pattern, re.DOTALL), held, needed)
    for pattern, held, needed in (
        (r"^(?P<a>\S+) is not within (?P<b>\S+) to (?P<c>.+)$", "{a}", "{b} to {c}"),
        (
            r"^(?:has |the \w+ has |the \w+ would be )?(?P<a>[\d,]+ [\w ]+?)(?: given)?; "
            r"(?:the limit is|limit) (?P<b>[\d,]+.*)$",
            "{a}",
            "at most {b}",
        ),
        (r"^(?P<a>\S+) given; \D+(?P<b>\d+ to \d+.*)$", "{a} {field}", "{b}"),
        (r"^(?P<a>\S+) given for (?P<b>\d+) (?P<c>\w+)$", "{a}", "{b}, as there are {b} {c}"),
        (r"^(?P<a>'.*?'|\".*?\") is (?:not )?(?P<b>neither .+)$", "{a}", "a value that is not {b}"),
        (r"^(?P<a>'.*?'|\".*?\") is not one of (?P<b>.+)$", "{a}", "one of {b}"),
        (r"^(?P<a>'.*?'|\".*?\") is not (?P<b>.+)$", "{a}", "{b}"),
        (r"^(?P<a>\S+) is over (?P<b>[\d,]+)", "{a}", "at most {b}"),
        (r"^(?P<a>\S+) is below (?P<b>-?[\d,]+)", "{a}", "at least {b}"),
        (r"^(?P<a>\S+) has no such parameter; it has (?P<b>.+)$", "{field}", "one of {b}"),
        (r"^(?P<a>at least \S+) is always true; (?P<b>.+)$", "{a}", "a higher number; {b}"),
        (r"(?:^|(?P<a>\w.*) )is missing(?:: (?P<b>.+))?", "nothing", "{a}{field} {b}"),
        (r"is not valid JSON", "text that is not JSON", "JSON"),
        (r"(?P<a>over|more than) (?P<b>[\d,]+ \w+)", "{a} {b}", "at most {b}"),
        (r"(?P<b>at most [\d,]+ .+)$", "more or something else", "{b}"),
        (r"^(?P<a>.+?)(?:;| it)+ must be (?P<b>.+)$", "{a}", "{b}"),
        (r"(?:^|\s)must be (?P<b>.+)$", "", "{b}"),
        (r"\bmust (?P<b>.+)$", "", "to {b}"),
        (r"^(?P<a>'.*?'|\".*?\") has no (?P<b>.+)$", "{a}", "{b}"),
        (r"^(?P<a>.+) does not (?P<b>.+)$", "{a}", "to {b}"),
        (r"(?:^|; )(?:use|send|give|serve) (?P<b>.+)$", "", "{b}"),
        (r"(?P<a>[\d,]+ .+?),? limit (?P<b>[\d,]+)$", "{a}", "at most {b}"),
    )
)


def facts_of(detail: str) -> Facts:
    """Return the field that a detail names, what it held and what was needed."""
    named = _FIELD.match(detail)
    field, problem = (named["field"], named["problem"]) if named else ("", detail)
    for pattern, held, needed in _PROBLEMS:
        if found := pattern.search(problem):
            groups = {name: text or "" for name, text in found.groupdict().items()}
            values = {"field": field, "a": ""} | groups
            return Facts(field, held.format_map(values).strip(), needed.format_map(values).strip())
    return Facts(field)
