"""Views of results: tables for people, tab-separated rows, and items for JSON lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

from extcli.errors import UsageError, shortened
from extcli.output import times
from extcli.output.columns import (
    Column,
    Table,
    build_table,
    int_column,
    listing,
    name_and_count_columns,
    name_with_spaces,
    one_item,
)
from extcli.output.printer import NOTHING as NOTHING
from extcli.output.printer import RenderableType, View
from extcli.output.sanitize import compact, field, json_text, pretty_json, visible
from extcli.output.terminal import Prose, bar, unwrapped_text
from extcli.output.times import claim_instant
from extcli.reading import Json


def stack(*parts: RenderableType) -> RenderableType:
    """Return these texts and tables below each other, with blank lines between them."""
    from rich.console import Group

    spaced = [each for part in parts for each in ("", Prose(part) if isinstance(part, str) else part)]
    return Group(*spaced[1:])


# Rankings


def ranking_view(top: int | None) -> View:
    """Return the view of the `top` first answers of a ranking, or of all."""

    def answers(document: Json) -> list[Json]:
        found = document["data"][:top]
        most = max((each["score"] for each in found), default=0) or 1
        return [{**each, "place": place, "share": each["score"] / most} for place, each in enumerate(found, 1)]

    return listing(
        answers,
        Column("", "place", right=True),
        Column("key", heading="answer"),
        int_column("score"),
        Column("", "share", text=bar, fills=True),
        else_shown="no answers yet",
        items=lambda document: document["data"][:top],
        leads=lambda answer: answer["place"] == 1,
    )


# Accumulation


def _poster_of_entry(entry: Json) -> str:
    return str(entry.get("user_id") or entry.get("opaque_user_id") or entry.get("opaque_id") or "")


BUFFER = listing(
    "",
    Column("observed", heading="observed (UTC)", text=times.utc_text),
    Column("channel_id", heading="channel"),
    Column("user", _poster_of_entry),
    Column("data", text=json_text, plain=json_text),
    else_shown="nothing collected",
)


# Objects


def _colored_json(document: object) -> RenderableType:
    from rich.highlighter import JSONHighlighter

    made = unwrapped_text(pretty_json(document))
    JSONHighlighter().highlight(made)
    return made


MEMBERS_OF_OBJECT = View(
    table=_colored_json,
    rows=lambda document: [(key, json_text(value)) for key, value in document.items()],
    items=lambda document: [{"key": key, "value": value} for key, value in document.items()],
    columns=("key", "JSON"),
)
"""A JSON object, by member."""


def member_view(member: str, table: Callable[[Any], RenderableType]) -> View:
    """Return the view of an object of which plain output is only this member."""
    return View(table=table, rows=lambda document: [(field(document[member]),)])


JSON_VALUE = View(table=_colored_json, rows=lambda document: [(json_text(document),)])
"""A JSON value, as a whole."""


_TIME_MEMBERS = ("exp", "iat", "nbf", "startsAt", "endsAt")


def _fact_text(name: str, value: object) -> str:
    """Return a value for people. Instants are also formatted."""
    text = visible(value if isinstance(value, str) else compact(value))
    instant = claim_instant(value) if name in _TIME_MEMBERS else value if name == "server_time" else None
    return f"{text}  ({times.utc_text(instant)})" if isinstance(instant, int) and instant else text


def _record_table(document: Any) -> Table:
    name, value = Column("name", itemgetter(0), ""), Column("value", lambda pair: _fact_text(*pair), "")
    return build_table((name, value), document.items())


RECORD = View(_record_table, lambda document: [(field(key), field(value)) for key, value in document.items()])
"""Named values."""

OUTCOME = View(table=lambda _: "", rows=lambda _: [])
"""Prints nothing, except as JSON."""


# The clock


def _clock_facts(clock: Json) -> Json:
    offset = times.clock_offset_text(clock["offset"]) or "none"
    return {"now": times.utc_text(clock["now"]), "offset": offset, "frozen": "yes" if clock["frozen"] else "no"}


CLOCK = member_view("now", lambda clock: _record_table(_clock_facts(clock)))


def _short_id(name: str) -> str:
    """Return an id, shortened if it is the digest of a PIN."""
    return f"{name[:12]}…" if re.fullmatch("[0-9a-f]{64}", name) else name


def _clock_line(clock: Json) -> str:
    return ", ".join(f"{name} {value}" for name, value in _clock_facts(clock).items())


MOVED_CLOCK = listing(
    lambda clock: clock.get("expired", []),
    Column("kind", heading="expired"),
    Column("id", lambda entry: _short_id(entry["id"])),
    Column("at", heading="at (UTC)", text=times.utc_text),
    else_shown=_clock_line,
    around=lambda clock, table: stack(table, _clock_line(clock)),
)
"""The clock after a move. Programs get what expired."""


SEEDED = listing(
    lambda result: [pair for pair in result["counts"].items() if pair[1]],
    *name_and_count_columns(text=name_with_spaces, plain=name_with_spaces),
    around=lambda result, table: stack(table, f"clock  {times.utc_text(result['now'])}"),
    items=one_item,
)
"""What a seed put into the service, by kind."""


# Tokens and users

SOLE_VALUE = View(
    table=lambda document: str(next(iter(document.values()))),
    rows=lambda document: [(str(value),) for value in document.values()],
)
"""An object with one member; only its value is printed."""


def _token_table(document: Json) -> RenderableType:
    table = _record_table(document["claims"])
    table.add_row("signed with", visible(f"{document['header'].get('alg')}, not checked"))
    for trap in document["traps"]:
        table.add_row("trap", trap)
    return table


TOKEN_CONTENT = View(
    table=_token_table,
    rows=lambda document: [*RECORD.rows(document["claims"]), *(("trap", trap) for trap in document["traps"])],
)


USER_IDS = listing("results", Column("user", "twitch_id", ""))


NAMESPACES = listing(
    "details",
    Column("name", heading="namespace"),
    Column("", "records", "records", right=True),
    Column("", "sockets", "sockets", right=True),
    Column("", "age", "age", lambda seconds: times.duration_text(seconds * 1000)),
    Column("", "idle", "last use", lambda seconds: f"{times.duration_text(seconds * 1000)} ago"),
    else_shown="no namespaces",
    items=lambda document: document["namespaces"],
)


def outcome_lines(outcome: Mapping[str, Any], name: str) -> list[str]:
    """Return the result of a wait in lines: wanted and actual values, and the last changes.

    Without changes of what has this `name`, it lists others of the same kind, which show a misspelled name.
    """
    wanted, found = outcome["wanted"], outcome["found"]
    facts = [f"{name}: {compact(found[name]) if name in found else 'absent'}" for name in wanted]
    own = [change for change in outcome["changes"] if change["id"] == name]
    heading = "last changes:" if own else "last changes of this kind:"
    lines = [
        f"expected: {', '.join(f'{name}: {text}' for name, text in wanted.items())}",
        f"got:      {', '.join(facts)}",
        heading if outcome["changes"] else "nothing of this kind has changed yet",
        *(f"  {_change_line(change)}" for change in own or outcome["changes"]),
    ]
    return [visible(line) for line in lines]


def _change_line(change: Mapping[str, Any]) -> str:
    value = "" if change["value"] is None else f" {change['value']}"
    user = f" by {change['user']}" if change["user"] else ""
    channel = f" in channel {change['channel_id']}" if change["channel_id"] else ""
    name = change["id"] or change["kind"]
    return f"{times.utc_text(change['at'])}  {name}: {change['did']}{value}{user}{channel}"


# A part of a result: `--query`


def compile_query(expression: str) -> Callable[[Any], tuple[Any, View]]:
    """Return a function that selects a part of a document: `None` if the document has none, and how to print it.

    Both raise `UsageError`: for an expression that is not JMESPath, and for a wrong call of a function in it.
    """
    import jmespath  # type: ignore[import-untyped]
    from jmespath.exceptions import JMESPathError  # type: ignore[import-untyped]

    try:
        compiled = jmespath.compile(expression)
    except JMESPathError as error:
        raise _query_error(expression, error) from None

    def part_of(document: Any) -> tuple[Any, View]:
        try:
            return compiled.search(document), QUERIED_PART
        except JMESPathError as error:
            raise _query_error(expression, error) from None

    return part_of


def _query_error(expression: str, error: Exception) -> UsageError:
    return UsageError(
        f"--query: cannot use {shortened(expression, 60)!r}",
        why=shortened(str(error).partition("\n")[0]),
        fix="see https://jmespath.org/specification.html; `stats.count` and `polls[].id` are examples",
    )


def _part_items(value: Any) -> Iterable[object]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _part_table(value: Any) -> RenderableType:
    return _colored_json(value) if isinstance(value, (dict, list)) else visible("".join(map(field, _part_items(value))))


QUERIED_PART = View(
    table=_part_table,
    rows=lambda value: (map(field, each if isinstance(each, list) else [each]) for each in _part_items(value)),
    items=_part_items,
)
"""A part of a result. Plain output has a line for each item of a list, and a field for each item of a list in it."""
