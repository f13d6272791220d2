"""Views of results: tables for people, tab-separated rows, and items for JSON lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.columns import (
    Column,
    grouped,
    listing,
    name_and_count_columns,
    name_with_spaces,
    shown,
    table,
    whole,
)
from extcli.output.printer import View
from extcli.output.sanitize import compact, field, json_text, pretty_json, visible
from extcli.output.times import instant_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_BAR = 28


def bar(share: float, width: int = _BAR) -> str:
    """Return a bar of `share` of `width` columns, drawn in eighths."""
    eighths = round(share * width * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (" ▏▎▍▌▋▊▉"[rest] if rest else "")


def stacked(*parts: RenderableType) -> RenderableType:
    """Return these texts and tables below each other, with blank lines between them."""
    from rich.console import Group
    from rich.text import Text

    spaced = [each for part in parts for each in ("", Text(part) if isinstance(part, str) else part)]
    return Group(*spaced[1:])


# Rankings


_ANSWER = (Column("key", heading="answer", folds=True), Column("score", text=grouped, right=True))


def ranking(top: int | None) -> View:
    """Return the view of the `top` first answers of a ranking, or of all."""

    def first(document: dict[str, Any]) -> list[dict[str, Any]]:
        return list(document["data"][:top])

    def as_table(document: dict[str, Any]) -> RenderableType:
        answers = first(document)
        most = max((answer["score"] for answer in answers), default=0) or 1
        share = Column("", "score", "", lambda score: bar(score / most, 20))
        return table([*_ANSWER, share], answers, numbered=True) if answers else "no answers yet"

    return replace(listing(first, *_ANSWER), table=as_table)


# Accumulation


def _poster_of_entry(entry: dict[str, Any]) -> str:
    return str(entry.get("user_id") or entry.get("opaque_user_id") or entry.get("opaque_id") or "")


BUFFER = listing(
    "",
    Column("observed", heading="observed (UTC)", text=times.shown),
    Column("channel_id", heading="channel", text=shown, folds=True),
    Column("user", _poster_of_entry, folds=True),
    Column("data", text=lambda data: visible(compact(data)), plain=json_text, folds=True),
    else_shown="nothing collected",
)


# Objects


def _pretty(document: object) -> RenderableType:
    from rich.highlighter import JSONHighlighter

    return JSONHighlighter()(pretty_json(document))


def _members(document: Any) -> list[tuple[str, Any]]:
    return list(document.items())


STORE = View(
    table=_pretty,
    rows=lambda document: [(field(key), json_text(value)) for key, value in _members(document)],
    items=lambda document: [{"key": key, "value": value} for key, value in _members(document)],
    columns=("key", "JSON"),
)
"""A JSON object, by member."""


def member_view(member: str, table: Callable[[Any], RenderableType]) -> View:
    """Return the view of an object of which plain output is only this member."""
    return View(table=table, rows=lambda document: [(field(document[member]),)])


DATA = View(table=_pretty, rows=lambda document: [(json_text(document),)])
"""A JSON value, as a whole."""


_SECONDS = ("exp", "iat", "nbf", "startsAt", "endsAt")


def _fact(name: str, value: object) -> str:
    """Return a value for people. Instants are also formatted."""
    text = visible(value if isinstance(value, str) else compact(value))
    instant = instant_of(value) if name in _SECONDS else value if name == "server_time" else None
    return f"{text}  ({times.shown(instant)})" if isinstance(instant, int) and instant else text


_MEMBERS = (
    Column("name", lambda pair: pair[0], ""),
    Column("value", lambda pair: _fact(*pair), "", folds=True),
)


def _record_table(document: Any) -> Table:
    return table(_MEMBERS, document.items())


RECORD = View(
    table=_record_table, rows=lambda document: [(field(key), field(value)) for key, value in _members(document)]
)
"""Named values."""

NOTHING = View(table=lambda _: "", rows=lambda _: [], items=lambda _: [])
"""Prints nothing, for the response `{}`."""


# The clock


def _clock_facts(clock: dict[str, Any]) -> dict[str, Any]:
    offset = clock["offset"]
    ahead = f"{times.span(offset)} {'ahead' if offset > 0 else 'behind'}" if offset else "none"
    return {"now": times.shown(clock["now"]), "offset": ahead, "frozen": "yes" if clock["frozen"] else "no"}


CLOCK = member_view("now", lambda clock: _record_table(_clock_facts(clock)))


_DIGEST = re.compile(r"[0-9a-f]{64}")


def _short_id(name: str) -> str:
    """Return an id, shortened if it is the digest of a PIN."""
    return f"{name[:12]}…" if _DIGEST.fullmatch(name) else name


def _clock_line(clock: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in _clock_facts(clock).items())


MOVED_CLOCK = listing(
    lambda clock: clock.get("expired", []),
    Column("kind", heading="expired"),
    Column("id", lambda entry: _short_id(entry["id"]), folds=True),
    Column("at", heading="at (UTC)", text=times.shown),
    else_shown=_clock_line,
    around=lambda clock, table: stacked(table, _clock_line(clock)),
)
"""The clock after a move. Programs get what expired."""


SEEDED = listing(
    lambda result: [pair for pair in result["counts"].items() if pair[1]],
    *name_and_count_columns(text=name_with_spaces, plain=name_with_spaces),
    around=lambda result, table: stacked(table, f"clock  {times.shown(result['now'])}"),
    items=whole,
)
"""What a seed put into the service, by kind."""


# Tokens and users

SOLE_VALUE = View(
    table=lambda document: str(next(iter(document.values()))),
    rows=lambda document: [(str(value),) for value in document.values()],
)
"""An object with one member; only its value is printed."""


def _token_table(document: dict[str, Any]) -> RenderableType:
    table = _record_table(document["claims"])
    table.add_row("signed with", visible(f"{document['header'].get('alg')}, not checked"))
    for trap in document["traps"]:
        table.add_row("trap", trap)
    return table


TOKEN_CONTENT = View(
    table=_token_table,
    rows=lambda document: [
        *[(field(name), field(value)) for name, value in document["claims"].items()],
        *[("trap", field(trap)) for trap in document["traps"]],
    ],
)


def _ids(document: Any) -> list[str]:
    return [str(entry["twitch_id"]) for entry in document["results"]]


USER_IDS = View(
    table=lambda document: "\n".join(map(visible, _ids(document))),
    rows=lambda document: [(name,) for name in _ids(document)],
    items=lambda document: document["results"],
    columns=("user",),
)


_NAMESPACE_COLUMNS = (
    Column("name", heading="namespace", folds=True),
    Column("records", text=str, right=True),
    Column("sockets", text=str, right=True),
    Column("age", text=lambda seconds: times.span(seconds * 1000)),
    Column("idle", heading="last use", text=lambda seconds: f"{times.span(seconds * 1000)} ago"),
)
NAMESPACES = View(
    table=lambda document: table(_NAMESPACE_COLUMNS, document["details"]) if document["details"] else "no namespaces",
    rows=lambda document: [(visible(name),) for name in document["namespaces"]],
    items=lambda document: document["namespaces"],
    columns=("name",),
)


_WIDTH = 78
"""Columns of a line in an error, which is indented by two."""


def outcome_lines(outcome: Mapping[str, Any], name: str) -> list[str]:
    """Return the result of a wait in lines of at most 78 columns: wanted and actual values, and the last changes.

    Without changes of what has this `name`, it lists others of the same kind, which show a misspelled name.
    """
    wanted, found = outcome["wanted"], outcome["found"]
    texts = [f"{name}: {text}" for name, text in wanted.items()]
    facts = [f"{name}: {compact(found[name]) if name in found else 'absent'}" for name in wanted]
    own = [change for change in outcome["changes"] if change["id"] == name]
    changes = [_change_line(change) for change in own or outcome["changes"]]
    heading = "last changes:" if own else "last changes of this kind:"
    lines = [
        f"wanted: {', '.join(texts)}",
        f"found:  {', '.join(facts)}",
        heading if changes else "nothing of this kind has changed yet",
        *(f"  {line}" for line in changes),
    ]
    return [cut_line(line) for line in lines]


def cut_line(line: str, width: int = _WIDTH) -> str:
    """Return the line with control characters escaped, cut to these columns."""
    line = visible(line)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _change_line(change: Mapping[str, Any]) -> str:
    value = "" if change["value"] is None else f" {change['value']}"
    user = f" by {change['user']}" if change["user"] else ""
    channel = f" in channel {change['channel_id']}" if change["channel_id"] else ""
    name = change["id"] or change["kind"]
    return f"{times.shown(change['at'])}  {name}: {change['did']}{value}{user}{channel}"
