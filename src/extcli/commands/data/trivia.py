"""`extcli trivia`: questions of the extension, votes, teams and the leaderboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emulator.contract.shell import quoted
from extcli.cli import argument, command, noun, option
from extcli.cli.options import with_options
from extcli.errors import Refused, UsageError
from extcli.output import views
from extcli.output.columns import Column, grouped, listing, whole
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.reading.shapes import document_of
from extcli.session import BACKEND, VIEWER, Session

if TYPE_CHECKING:
    from rich.console import RenderableType

    from extcli.api.client import Service

app = noun("Trivia: questions with options, one vote per user, teams by channel, and a leaderboard.")

_STATES = ("inactive", "unlocked", "locked", "results")
_STATE = "state-"


def _result(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda question: question["results"].get(name, "")


def _state(question: dict[str, Any]) -> Any:
    return question["state"].removeprefix(_STATE)


def _option_ids(question: dict[str, Any]) -> str:
    return ", ".join(visible(option["id"]) for option in question["options"])


QUESTIONS = listing(
    "questions",
    Column("id"),
    Column("state", _state),
    Column("name", heading="question", folds=True),
    Column("", _option_ids, "options", folds=True),
    Column("own vote", _result("you"), "yours"),
    Column("winner", _result("winner")),
    else_shown="no questions",
)


def _options(question: dict[str, Any]) -> list[dict[str, str]]:
    """Return id, name and marks of each option."""
    results = question["results"]
    marks = (("winner", results.get("winner")), ("yours", results.get("you")))
    return [
        {**each, "mark": ", ".join(mark for mark, option in marks if option == each["id"])}
        for each in question["options"]
    ]


def _with_title(question: dict[str, Any], options: RenderableType) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    title = f"{visible(question['id'])} ({visible(_state(question))})  {visible(question['name'])}".rstrip()
    return Group(Text(title), options)


QUESTION = listing(
    _options,
    Column("option", "id"),
    Column("name", folds=True),
    Column("mark", heading=""),
    else_shown=lambda question: _with_title(question, "no options"),
    around=_with_title,
    items=whole,
)

LEADERBOARD = listing(
    "leaderboard",
    Column("team", "team_id", folds=True),
    Column("score", "combined_score", text=grouped, right=True),
    else_shown="no teams yet",
    numbered=True,
)
TEAM = View(
    table=lambda document: visible(document["id"]) or "no team yet",
    rows=lambda document: [(field(document["id"]),)] if document["id"] else [],
)

Question = Annotated[str, argument("QUESTION", "The question's id.")]
OptionId = Annotated[str, argument("OPTION", "The option's id.")]


def _texts(
    session: Session,
    name: str | None = option("--name TEXT", "The text to show."),
    short_name: str | None = option("--short-name TEXT", "A shorter text to show where space is limited."),
    description: str | None = option("--description TEXT", "A longer text."),
    image: str | None = option("--image URL", "The address of an image."),
    order: float | None = option("--order N", "The position in lists: smaller numbers come first."),
) -> dict[str, Any]:
    """Return the texts of a question or option, with `None` for those that are not given."""
    return {"name": name, "short_name": short_name, "description": description, "image": image, "order": order}


def _edited(present: Mapping[str, Any], texts: Mapping[str, Any], id: str) -> dict[str, Any]:
    """Return a question or option with the texts that are given; the others stay as they are."""
    edited = {name: present.get(name) if text is None else text for name, text in texts.items()}
    return {**{name: text for name, text in edited.items() if text is not None}, "id": id}


def _checked_state(name: str) -> str:
    name = name.removeprefix(_STATE)
    if name not in _STATES:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(_STATES)}")
    return name


@command(app, "list", prints=QUESTIONS)
def list_questions(session: Session) -> None:
    """List the questions with the caller's votes and the winners. Acts as viewer:U1.

    --as backend also lists inactive questions. Plain output is $columns.

    Example: extcli trivia list --as backend
    """
    session.output.show(session.service(VIEWER).read_questions(), QUESTIONS)


@command(app, prints=QUESTION)
def get(session: Session, question: Question) -> None:
    """Print a question and its options. Acts as viewer:U1; --as backend also reads inactive questions.

    Plain output is $columns; the column `mark` has `winner`, `yours` or both.

    Example: extcli trivia get q1
    """
    session.output.show(session.service(VIEWER).read_questions(question), QUESTION)


@command(app)
@with_options("texts", _texts)
def define(session: Session, question: Question, *, texts: dict[str, Any]) -> None:
    """Add a question, or change texts of an existing one. Acts as backend.

    A new question is inactive and has no options. An edit keeps the options, the state, the votes,
    and texts for which no option is given.

    Example: extcli trivia define q1 --name "Which team wins?"
    """
    service = session.service(BACKEND)
    present = _question(service, question)
    session.output.show(service.edit_question(_edited(present, texts, question)), QUESTION)


@command(app, loses="question {question} is deleted, with its options and votes")
def rm(session: Session, question: Question) -> None:
    """Delete a question with its options and votes. Acts as backend.

    Example: extcli trivia rm q1
    """
    session.output.show(session.service(BACKEND).remove_question(question), views.NOTHING)
    session.output.note(f"deleted question {visible(question)}")


@command(app)
@with_options("texts", _texts)
def define_option(session: Session, question: Question, option: OptionId, *, texts: dict[str, Any]) -> None:
    """Add an option to a question, or change its texts. Acts as backend.

    Example: extcli trivia define-option q1 red --name "Red team"
    """
    service = session.service(BACKEND)
    options = _question(service, question).get("options") or []
    present: dict[str, Any] = next((each for each in options if each["id"] == option), {})
    session.output.show(service.edit_option(question, _edited(present, texts, option)), QUESTION)


@command(app, loses="option {option} of question {question} is deleted, and votes for it no longer count")
def rm_option(session: Session, question: Question, option: OptionId) -> None:
    """Delete an option of a question. Votes for it no longer count. Acts as backend.

    Example: extcli trivia rm-option q1 red
    """
    session.output.show(session.service(BACKEND).remove_option(question, option), QUESTION)


@command(app)
def move(
    session: Session,
    question: Question,
    state: str = argument(
        "STATE", f"One of {', '.join(_STATES)}.", callback=_checked_state, autocompletion=lambda: list(_STATES)
    ),
    winner: str | None = option(
        "--winner OPTION", "The id of the winning option. Required if the new state is `results`."
    ),
) -> None:
    """Move a question to another state. Acts as backend.

    inactive hides it, unlocked takes votes, locked shows it without taking votes, and
    results shows the winner and counts for the leaderboard.

    \b
    Examples:
      extcli trivia move q1 unlocked
      extcli trivia move q1 results --winner red
    """
    if (winner is not None) != (state == "results"):
        raise UsageError("the state `results` needs --winner OPTION; other states do not take it")
    response = session.service(BACKEND).set_question_state(question, f"{_STATE}{state}", winner=winner)
    moved = f"question {visible(question)} is now {state}"
    session.output.show(response, View(table=lambda _: moved, rows=lambda _: [(state,)]))


@command(app)
def vote(session: Session, question: Question, option: OptionId) -> None:
    """Vote on an unlocked question, or replace an earlier vote. Acts as viewer:U1.

    The first vote also joins the team of the channel.

    Example: extcli trivia vote q1 red --as viewer:U7
    """
    try:
        response = session.service(VIEWER).vote_on_question(question, option)
    except Refused as error:
        if error.code in ("trivia.question_not_open", "trivia.not_unlocked"):
            error.fix = f"open it: `extcli trivia move {quoted(question)} unlocked`"
        raise
    session.output.show(response, views.NOTHING)
    session.output.note(f"voted {visible(option)}")


@command(app, prints=LEADERBOARD)
def leaderboard(session: Session) -> None:
    """List the best teams, highest score first. Acts as backend. Plain output is $columns.

    Example: extcli trivia leaderboard
    """
    session.output.show(session.service(BACKEND).read_leaderboard(), LEADERBOARD)


@command(app)
def join(session: Session) -> None:
    """Join the team of the channel, unless the caller has a team. Prints the caller's team. Acts as viewer:U1.

    Example: extcli trivia join --channel 1001
    """
    session.output.show(session.service(VIEWER).join_team(), TEAM)


@command(app)
def team(session: Session) -> None:
    """Print the caller's team, which is a channel. Acts as viewer:U1.

    Example: extcli trivia team --as viewer:U7
    """
    session.output.show(session.service(VIEWER).read_team(), TEAM)


def _question(service: Service, question: str) -> dict[str, Any]:
    """Return the question, or an empty object if there is none."""
    try:
        response = service.read_questions(question)
    except Refused as error:
        if error.status != 404:
            raise
        return {}
    return dict(document_of(response, {"options?": ([{"id": str}], None)}))
