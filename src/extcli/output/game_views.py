"""Views of trivia and purchases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import table_of

if TYPE_CHECKING:
    from rich.console import RenderableType

_STATE = "state-"


def _state(question: dict[str, Any]) -> str:
    return visible(question["state"].removeprefix(_STATE))


def _questions_table(document: dict[str, Any]) -> RenderableType:
    table = table_of("id", "state", "question", "options", "yours", "winner", folded=(2, 3))
    for each in document["questions"]:
        options = ", ".join(visible(option["id"]) for option in each["options"])
        results = [visible(each["results"].get(name, "")) for name in ("you", "winner")]
        table.add_row(visible(each["id"]), _state(each), visible(each["name"]), options, *results)
    return table if table.row_count else "no questions"


def _question_row(question: dict[str, Any]) -> list[str]:
    results = question["results"]
    return [
        *[field(question[name]).removeprefix(_STATE) for name in ("id", "state", "name")],
        *[field(results.get(name, "")) for name in ("you", "winner")],
    ]


QUESTIONS = View(
    table=_questions_table,
    rows=lambda document: map(_question_row, document["questions"]),
    items=lambda document: document["questions"],
)


def _options(question: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return id, name and marks of each option."""
    results = question["results"]
    marks = (("winner", results.get("winner")), ("yours", results.get("you")))
    return [
        (each["id"], each["name"], ", ".join(mark for mark, option in marks if option == each["id"]))
        for each in question["options"]
    ]


def _question_table(question: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    title = Text(f"{visible(question['id'])} ({_state(question)})  {visible(question['name'])}".rstrip())
    table = table_of("option", "name", "", folded=(1,))
    for option in _options(question):
        table.add_row(*map(visible, option))
    return Group(title, table if table.row_count else Text("no options"))


QUESTION = View(
    table=_question_table,
    rows=lambda question: [[field(part) for part in option] for option in _options(question)],
)


def _leaderboard_table(document: dict[str, Any]) -> RenderableType:
    table = table_of("", "team", "score", right=(0, 2), folded=(1,))
    for place, team in enumerate(document["leaderboard"], 1):
        table.add_row(str(place), visible(team["team_id"]), f"{team['combined_score']:,}")
    return table if table.row_count else "no teams yet"


LEADERBOARD = View(
    table=_leaderboard_table,
    rows=lambda document: [(field(team["team_id"]), field(team["combined_score"])) for team in document["leaderboard"]],
    items=lambda document: document["leaderboard"],
)

TEAM = View(
    table=lambda document: visible(document["id"]) or "no team yet",
    rows=lambda document: [(field(document["id"]),)] if document["id"] else [],
)


def _purchases_table(document: dict[str, Any]) -> RenderableType:
    table = table_of("posted (UTC)", "id", "product", "cost", "buyer", right=(3,), folded=(1, 2, 4))
    for each in document["transactions"]:
        table.add_row(
            times.shown(each["timestamp"]),
            visible(each["id"]),
            visible(each["sku"]),
            f"{each['cost']:,} {visible(each['currency'])}",
            visible(each["userId"]),
        )
    return table if table.row_count else "no outstanding purchases"


PURCHASES = View(
    table=_purchases_table,
    rows=lambda document: [
        [field(each[name]) for name in ("id", "sku", "cost", "currency", "userId", "timestamp")]
        for each in document["transactions"]
    ],
    items=lambda document: document["transactions"],
)
