"""The shapes of refusals, explanations and the table between them; reading the detail of an error. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from emulator.callers import Caller

PARAMETER: Final = "Malformed … parameter"
"""Stands for the reasons of all malformed query parameters."""


class Refusal(Struct, frozen=True):
    """What is known of a refused request."""

    status: int
    reason: str
    detail: str
    name: str = ""
    """The method and declared path of an endpoint, or an action and its target."""
    path: str = ""
    """The path and query as sent, without secrets."""
    body: bytes = b""
    """The body as sent, without secrets; perhaps cut off."""
    caller: Caller | None = None


class Explanation(Struct, frozen=True):
    """Why a request was refused."""

    rule: str
    """The rule that decided: a ruling such as `A1`, or a section such as `spec: Authentication`."""
    title: str
    held: str
    """What the caller had or sent."""
    needed: str
    next_step: str
    text: str = ""
    """What the rule says."""


class Case(NamedTuple):
    """One kind of refusal. Texts may contain `{field}`, `{role}` and other values of `rules.values_of`."""

    reasons: tuple[str, ...]
    """`ServiceError.reason`, or `PARAMETER`."""
    detail: str
    """A regular expression that is found in the detail. Its named groups are values for the texts."""
    rule: str
    title: str
    next_step: str
    held: str = "{held}"
    needed: str = "{needed}"


def cases(*reasons: str, rows: Iterable[tuple[str, ...]]) -> Iterator[Case]:
    """Yield the cases of these reasons; the first whose detail matches counts."""
    for detail, rule, title, next_step, *facts in rows:
        yield Case(reasons, detail, rule, title, next_step, *facts)


class Facts(NamedTuple):
    """What a detail says about a value. Empty texts are unknown."""

    field: str = ""
    held: str = ""
    needed: str = ""


_FIELD: Final = re.compile(r"(?P<field>[\w.$-]+(?:\[[^\]]*\][\w.]*)*): (?P<problem>.+)", re.DOTALL)
_PROBLEMS: Final = tuple(
    (re.compile(pattern, re.DOTALL), held, needed)
    for pattern, held, needed in (
        (r"^(?P<a>\S+) is not within (?P<b>\S+) to (?P<c>.+)$", "{a}", "{b} to {c}"),
        (r"expected `(?P<a>[^`]+)`(?: of (?P<c>[^,]+))?, got `(?P<b>[^`]+)`", "{b}", "{a} {c}"),
        (r"^(?:object )?missing required field `(?P<a>\w+)`", "no {a}", "{a}"),
        (
            r"^(?:has |the \w+ has |the \w+ would be )?(?P<a>[\d,]+ [\w ]+?)(?: given)?; "
            r"(?:the limit is|limit) (?P<b>[\d,]+.*)$",
            "{a}",
            "at most {b}",
        ),
        (r"^(?P<a>'.*?'|\".*?\") is not one of (?P<b>.+)$", "{a}", "one of {b}"),
        (r"^(?P<a>'.*?'|\".*?\") is not (?P<b>.+)$", "{a}", "{b}"),
        (r"^(?P<a>'.*?'|\".*?\") is (?P<b>neither .+)$", "{a}", "a value that is {b}"),
        (r"^(?P<a>'.*?'|\".*?\") must be (?P<b>.+)$", "{a}", "{b}"),
        (r"^is missing", "nothing", "{field}"),
        (r"^(?P<a>.+?); must be (?P<b>.+)$", "{a}", "{b}"),
        (r"^must be (?P<b>.+)$", "", "{b}"),
        (r"(?:^|; )use (?P<b>.+)$", "", "{b}"),
        (r"(?P<a>[\d,]+ .+?),? limit (?P<b>[\d,]+)$", "{a}", "at most {b}"),
    )
)


def facts_of(detail: str) -> Facts:
    """Return the field that a detail names, what it held and what was needed."""
    named = _FIELD.match(detail)
    field, problem = (named["field"], named["problem"]) if named else ("", detail)
    for pattern, held, needed in _PROBLEMS:
        if found := pattern.search(problem):
            values = {"field": field, **{name: text or "" for name, text in found.groupdict().items()}}
            return Facts(field, held.format_map(values).strip(), needed.format_map(values).strip())
    return Facts(field)
