"""Views of a poll: its statistics with the options of its definition, and its log of votes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.columns import Column, grouped, listing, shown, table_of
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import bar, stacked

if TYPE_CHECKING:
    from rich.console import RenderableType

_COUNTERS = 64
COUNTED = f"0 to {_COUNTERS - 1}"
"""The values that the statistics count one by one."""
_FEW_OPTIONS = 10
"""A definition with at most this many options is shown in full, also the options without votes."""


def _counted_values(poll: Mapping[str, Any]) -> dict[int, int]:
    return {value: count for value, count in enumerate(poll["stats"]["specific"]) if count}


def votes_outside(poll: Mapping[str, Any]) -> int:
    """Return how many votes have a value that the statistics do not count."""
    return int(poll["stats"]["count"]) - sum(_counted_values(poll).values())


def count_outside(log: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Return the votes in a log by value, for the values that the statistics do not count."""
    votes: Counter[int] = Counter()
    for vote in log:
        if not 0 <= vote["value"] < _COUNTERS:
            votes[vote["value"]] += vote.get("count", 1)
    return votes


def poll(outside: Mapping[int, int], definition: Mapping[str, Any]) -> View:
    """Return the view of a poll. A table also shows the prompt and options of its definition, CSV the options.

    `outside` has the votes for values that the statistics do not count, if they are known.
    """

    def histogram(result: Mapping[str, Any]) -> list[dict[str, int]]:
        votes = sorted((_counted_values(result) | dict(outside)).items())
        return [{"value": value, "count": count} for value, count in votes]

    def as_csv(result: Mapping[str, Any]) -> Iterator[Iterable[str]]:
        options = dict(enumerate(definition.get("options") or []))
        yield "value", "option", "count"
        for each in histogram(result):
            yield field(each["value"]), field(options.get(each["value"], "")), field(each["count"])

    def as_table(result: Mapping[str, Any]) -> RenderableType:
        return _poll_table(result, {each["value"]: each["count"] for each in histogram(result)}, definition)

    return replace(listing(histogram, Column("value"), Column("count")), table=as_table, csv=as_csv)


def _poll_table(poll: Mapping[str, Any], votes: dict[int, int], definition: Mapping[str, Any]) -> RenderableType:
    options = list(definition.get("options") or [])
    prompt = [visible(str(definition["prompt"]))] if definition.get("prompt") else []
    unknown = poll["stats"]["count"] - sum(votes.values())
    if len(options) <= _FEW_OPTIONS:
        votes = {value: 0 for value in range(len(options))} | votes
    rows = [
        (str(value), visible(str(options[value])) if 0 <= value < len(options) else "", count)
        for value, count in sorted(votes.items())
    ]
    if unknown > 0:
        rows.append(("other", "", unknown))
    summary = "\n".join(", ".join(each) for each in (list(_facts(poll)), list(_state(definition))) if each)
    if not rows:
        return "\n".join([*prompt, summary])
    total = poll["stats"]["count"] or 1
    columns = ["value", *["option"] * bool(options), "votes", "", "share"]
    numbers = [at for at, name in enumerate(columns) if name in ("value", "votes", "share")]
    table = table_of(*columns, right=numbers, folded=[1] if options else [])
    for value, option, count in rows:
        table.add_row(value, *[option] * bool(options), f"{count:,}", bar(count / total), f"{count / total:.1%}")
    return stacked(*prompt, table, summary)


def _facts(poll: Mapping[str, Any]) -> Iterator[str]:
    stats, outside = poll["stats"], votes_outside(poll)
    total = stats["count"]
    if not total:
        yield "no votes yet"
        return
    yield f"{total:,} {'vote' if total == 1 else 'votes'}"
    yield f"mean {stats['mean']:g}"
    yield f"stddev {stats['stddev']:.4g}"
    yield f"sum {stats['sum']:,}"
    if outside:
        yield f"{outside:,} outside {COUNTED}"
    if "vote" in poll:
        yield f"yours: {poll['vote']}"


def _state(definition: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the poll is closed, and when it opens or closes, if its definition says so."""
    if definition.get("disabled"):
        yield "disabled"
    pending, expired = (definition.get("status") == status for status in ("pending", "expired"))
    for name, verb in (("startsAt", "opens" if pending else ""), ("endsAt", "closed" if expired else "closes")):
        instant = times.instant_of(definition.get(name))
        if verb and instant:
            yield f"{verb} at {times.shown(instant)}"


VOTE_LOG = listing(
    "",
    Column("identifier", heading="voter", text=shown, folds=True),
    Column("opaque", heading="opaque id", text=shown, folds=True),
    Column("value", text=shown, right=True),
    Column("timestamp", heading="received (UTC)", text=lambda at: times.shown(int(at))),
    Column("count", lambda vote: vote.get("count", 1), text=grouped, right=True),
    else_shown="no votes yet",
)
