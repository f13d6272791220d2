"""The shapes of refusals, of explanations and of the table between them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct


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


class Case(NamedTuple):
    """One kind of refusal. Texts may contain `{field}` and other values of `rules.values_of`."""

    reasons: tuple[str, ...]
    """`ServiceError.reason`."""
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
