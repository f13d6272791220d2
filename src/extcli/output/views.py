"""Views of results: tables for people, tab-separated rows, and items for JSON lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from extcli.output import times
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


def table_of(*columns: str, right: Sequence[int] = (), folded: Sequence[int] = ()) -> Table:
    """Return a table without lines. Columns in `folded` wrap; the others are cut off. Those in `right` align right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for index, name in enumerate(columns):
        folds = index in folded
        table.add_column(
            name,
            justify="right" if index in right else "left",
            overflow="fold" if folds else "ellipsis",
            no_wrap=not folds,
            min_width=min(len(name), 8),
        )
    return table


def stacked(*parts: RenderableType) -> RenderableType:
    """Return these texts and tables below each other, with blank lines between them."""
    from rich.console import Group
    from rich.text import Text

    spaced = [each for part in parts for each in ("", Text(part) if isinstance(part, str) else part)]
    return Group(*spaced[1:])


# Rankings


def _ranking_table(answers: list[dict[str, Any]]) -> RenderableType:
    table = table_of("", "answer", "score", "", right=(0, 2), folded=(1,))
    most = max((answer["score"] for answer in answers), default=0) or 1
    for place, answer in enumerate(answers, 1):
        table.add_row(str(place), visible(answer["key"]), f"{answer['score']:,}", bar(answer["score"] / most, 20))
    return table if answers else "no answers yet"


def ranking(top: int | None) -> View:
    """Return the view of the `top` first answers of a ranking, or of all."""
    return View(
        table=lambda document: _ranking_table(document["data"][:top]),
        rows=lambda document: [(field(answer["key"]), field(answer["score"])) for answer in document["data"][:top]],
        items=lambda document: document["data"][:top],
    )


# Accumulation


def _poster(entry: dict[str, Any]) -> str:
    return str(entry.get("user_id") or entry.get("opaque_user_id") or entry.get("opaque_id") or "")


def _buffer_table(entries: Iterable[dict[str, Any]]) -> RenderableType:
    table = table_of("observed (UTC)", "channel", "user", "data", folded=(1, 2, 3))
    for entry in entries:
        table.add_row(
            times.shown(entry["observed"]),
            visible(str(entry["channel_id"])),
            visible(_poster(entry)),
            visible(compact(entry["data"])),
        )
    return table if table.row_count else "nothing collected"


def _buffer_row(entry: dict[str, Any]) -> list[str]:
    place = [field(entry["observed"]), field(entry["channel_id"]), field(_poster(entry))]
    return [*place, json_text(entry["data"])]


BUFFER = View(table=_buffer_table, rows=lambda entries: map(_buffer_row, entries), items=lambda entries: entries)


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
)
"""A JSON object, by member."""

DATA = View(table=_pretty, rows=lambda document: [(json_text(document),)])
"""A JSON value, as a whole."""


_SECONDS = ("exp", "iat", "nbf", "startsAt", "endsAt")


def _fact(name: str, value: object) -> str:
    """Return a value for people. Instants are also formatted."""
    text = visible(value if isinstance(value, str) else compact(value))
    instant = instant_of(value) if name in _SECONDS else value if name == "server_time" else None
    return f"{text}  ({times.shown(instant)})" if isinstance(instant, int) and instant else text


def _record_table(document: Any) -> Table:
    table = table_of("", "", folded=(1,))
    table.show_header = False
    for name, value in _members(document):
        table.add_row(visible(name), _fact(name, value))
    return table


RECORD = View(
    table=_record_table, rows=lambda document: [(field(key), field(value)) for key, value in _members(document)]
)
"""Named values."""

NOTHING = View(table=lambda _: "", rows=lambda _: [], items=lambda _: [])
"""Prints nothing, for the answer `{}`."""


# The clock


def _clock_facts(clock: dict[str, Any]) -> dict[str, Any]:
    offset = clock["offset"]
    ahead = f"{times.span(offset)} {'ahead' if offset > 0 else 'behind'}" if offset else "none"
    return {"now": times.shown(clock["now"]), "offset": ahead, "frozen": "yes" if clock["frozen"] else "no"}


CLOCK = View(
    table=lambda clock: _record_table(_clock_facts(clock)),
    rows=lambda clock: [(field(clock["now"]),)],
)


_DIGEST = re.compile(r"[0-9a-f]{64}")


def _short(name: str) -> str:
    """Shorten the id of a PIN, which is a digest."""
    return f"{name[:12]}…" if _DIGEST.fullmatch(name) else name


def _moved_table(clock: dict[str, Any]) -> RenderableType:
    table = table_of("expired", "id", "at (UTC)", folded=(1,))
    for entry in clock.get("expired", []):
        table.add_row(visible(entry["kind"]), visible(_short(entry["id"])), times.shown(entry["at"]))
    facts = ", ".join(f"{name} {value}" for name, value in _clock_facts(clock).items())
    return stacked(table, facts) if table.row_count else facts


MOVED_CLOCK = View(
    table=_moved_table,
    rows=lambda clock: [
        [field(entry["kind"]), field(_short(entry["id"])), field(entry["at"])] for entry in clock.get("expired", [])
    ],
    items=lambda clock: clock.get("expired", []),
)
"""The clock after a move. Programs get what expired."""


def _seeded_rows(result: dict[str, Any]) -> list[tuple[str, int]]:
    return [(name.replace("_", " "), number) for name, number in result["counts"].items() if number]


def _seeded_table(result: dict[str, Any]) -> RenderableType:
    table = table_of("", "", right=(1,))
    table.show_header = False
    for name, number in _seeded_rows(result):
        table.add_row(name, f"{number:,}")
    return stacked(table, f"clock  {times.shown(result['now'])}")


SEEDED = View(
    table=_seeded_table, rows=lambda result: [(field(name), field(number)) for name, number in _seeded_rows(result)]
)
"""What a seed put into the service, by kind."""


# Tokens and users

SOLE_VALUE = View(
    table=lambda document: str(next(iter(document.values()))),
    rows=lambda document: [(str(value),) for value in document.values()],
)
"""An object with one member, of which only the value is printed."""


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
    return [visible(str(entry["twitch_id"])) for entry in document["results"]]


USER_IDS = View(
    table=lambda document: "\n".join(_ids(document)),
    rows=lambda document: [(name,) for name in _ids(document)],
    items=lambda document: document["results"],
)


def _names(document: Any) -> list[str]:
    return [visible(name) for name in document["namespaces"]]


def _namespace_table(document: Any) -> RenderableType:
    details = document.get("details")
    if not details:  # a service of an earlier version lists names only
        return "\n".join(_names(document)) or "no namespaces"
    table = table_of("namespace", "records", "sockets", "age", "last use", right=(1, 2), folded=(0,))
    for each in details:
        numbers = (str(each["records"]), str(each["sockets"]), times.span(each["age"] * 1000))
        table.add_row(visible(each["name"]), *numbers, f"{times.span(each['idle'] * 1000)} ago")
    return table


NAMESPACES = View(
    table=_namespace_table,
    rows=lambda document: [(name,) for name in _names(document)],
    items=lambda document: document["namespaces"],
)
