"""`extcli trivia`: questions of the extension, votes, teams and the leaderboard."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from extcli.cli import argument, command, noun, option
from extcli.cli.options import with_options
from extcli.errors import UsageError
from extcli.output import views
from extcli.output.columns import Column, int_column, listing, one_item
from extcli.output.printer import RenderableType, View
from extcli.output.sanitize import visible
from extcli.reading import Json, document_of
from extcli.session import BACKEND, VIEWER, Service, Session

app = noun("Trivia: questions with options, one vote per user, teams by channel, and a leaderboard.")

_STATE_PREFIX = "state-"


class State(StrEnum):
    """The state of a question."""

    INACTIVE = "inactive"
    UNLOCKED = "unlocked"
    LOCKED = "locked"
    RESULTS = "results"


def _short_state(question: Json) -> Any:
    return question["state"].removeprefix(_STATE_PREFIX)


QUESTIONS = listing(
    "questions",
    Column("id"),
    Column("state", _short_state),
    Column("name", heading="question"),
    Column("", lambda each: ", ".join(option["id"] for option in each["options"]), "options"),
    Column("own vote", lambda each: each["results"].get("you", ""), "yours"),
    Column("winner", lambda each: each["results"].get("winner", "")),
    else_shown="no questions",
)


def _marked_options(question: Json) -> list[dict[str, str]]:
    """Return id, name and marks of each option."""
    marked = {"winner": question["results"].get("winner"), "yours": question["results"].get("you")}
    found = []
    for each in question["options"]:
        marks = [mark for mark, id in marked.items() if id == each["id"]]
        found.append({**each, "mark": ", ".join(marks)})
    return found


def _with_title(question: Json, options: RenderableType) -> RenderableType:
    title = f"{visible(question['id'])} ({visible(_short_state(question))})  {visible(question['name'])}"
    return views.stack(title.rstrip(), options)


QUESTION = listing(
    _marked_options,
    Column("option", "id"),
    Column("name"),
    Column("mark", heading=""),
    around=_with_title,
    items=one_item,
)

LEADERBOARD = listing(
    "leaderboard",
    Column("team", "team_id"),
    int_column("score", "combined_score"),
    else_shown="no teams yet",
)

Question = Annotated[str, argument("QUESTION", "The question's id.")]
OptionId = Annotated[str, argument("OPTION", "The option's id.")]


def _text_options(
    session: Session,
    name: str | None = option("--name TEXT", "The text to show."),
    short_name: str | None = option("--short-name TEXT", "A shorter text to show where space is limited."),
    description: str | None = option("--description TEXT", "A longer text."),
    image: str | None = option("--image URL", "The address of an image."),
    order: float | None = option("--order N", "The position in lists: smaller numbers come first."),
) -> Json:
    """Return the texts of a question or option, with `None` for those that are not given."""
    return {"name": name, "short_name": short_name, "description": description, "image": image, "order": order}


def _merged(present: Json, texts: Json, id: str) -> Json:
    """Return a question or option with the texts that are given; the others stay as they are."""
    merged = {name: present.get(name) if text is None else text for name, text in texts.items()}
    return {name: value for name, value in merged.items() if value is not None} | {"id": id}


@command(app, "list", prints=QUESTIONS)
def list_questions(session: Session) -> None:
    """List the questions with the caller's votes and the winners. Acts as viewer:U1.

    --as backend also lists inactive questions. Plain output is $columns.

    Example: extcli trivia list --as backend
    """
    session.output.show(session.service(VIEWER).get("curated_poll"), QUESTIONS)


@command(app, prints=QUESTION)
def get(session: Session, question: Question) -> None:
    """Print a question and its options. Acts as viewer:U1; --as backend also reads inactive questions.

    Plain output is $columns; the column `mark` has `winner`, `yours` or both.

    Example: extcli trivia get q1
    """
    session.output.show(session.service(VIEWER).get("curated_poll", id=question), QUESTION)


@command(app)
@with_options("texts", _text_options)
def define(session: Session, question: Question, *, texts: Json) -> None:
    """Add a question, or change texts of an existing one. Acts as backend.

    A new question is inactive and has no options. An edit keeps the options, the state, the votes,
    and texts for which no option is given.

    Example: extcli trivia define q1 --name "Which team wins?"
    """
    service = session.service(BACKEND)
    present = _question_if_any(service, question)
    session.output.show(service.post("curated_poll_edit", _merged(present, texts, question)), QUESTION)


@command(app, loses="question {question} is deleted, with its options and votes")
def rm(session: Session, question: Question) -> None:
    """Delete a question with its options and votes. Acts as backend.

    Example: extcli trivia rm q1
    """
    response = session.service(BACKEND).delete("curated_poll_edit", {"id": question})
    session.output.done(response, f"deleted question {visible(question)}")


@command(app)
@with_options("texts", _text_options)
def define_option(session: Session, question: Question, option: OptionId, *, texts: Json) -> None:
    """Add an option to a question, or change its texts. Acts as backend.

    Example: extcli trivia define-option q1 red --name "Red team"
    """
    service = session.service(BACKEND)
    options = _question_if_any(service, question).get("options") or []
    by_id = {each["id"]: each for each in options}
    edited = {"id": question, "option": _merged(by_id.get(option, {}), texts, option)}
    session.output.show(service.post("curated_poll_edit_option", edited), QUESTION)


@command(app, loses="option {option} of question {question} is deleted, and votes for it no longer count")
def rm_option(session: Session, question: Question, option: OptionId) -> None:
    """Delete an option of a question. Votes for it no longer count. Acts as backend.

    Example: extcli trivia rm-option q1 red
    """
    removed = {"question": question, "option": option}
    session.output.show(session.service(BACKEND).delete("curated_poll_edit_option", removed), QUESTION)


@command(app)
def move(
    session: Session,
    question: Question,
    state: State = argument("STATE", "The new state."),
    winner: str | None = option("--winner OPTION", "The winning option. Required for the state `results`."),
) -> None:
    """Move a question to another state. Acts as backend.

    inactive hides it, unlocked takes votes, locked shows it without taking votes, and
    results shows the winner and counts for the leaderboard.

    \b
    Examples:
      extcli trivia move q1 unlocked
      extcli trivia move q1 results --winner red
    """
    if (winner is not None) != (state is State.RESULTS):
        raise UsageError("the state `results` needs --winner OPTION; other states do not take it")
    change = {"transition": f"{_STATE_PREFIX}{state}"} | ({} if winner is None else {"winner": winner})
    response = session.service(BACKEND).post("curated_poll_state", change, id=question)
    moved = f"question {visible(question)} is now {state}"
    session.output.show(response, View(table=lambda _: moved, rows=lambda _: [(state,)]))


@command(app)
def vote(session: Session, question: Question, option: OptionId) -> None:
    """Vote on an unlocked question, or replace an earlier vote. Acts as viewer:U1.

    The first vote also joins the team of the channel.

    Example: extcli trivia vote q1 red --as viewer:U7
    """
    response = session.service(VIEWER).post("curated_poll", {"question_id": question, "vote": option})
    session.output.done(response, f"voted {visible(option)}")


@command(app, prints=LEADERBOARD)
def leaderboard(session: Session) -> None:
    """List the best teams, highest score first. Acts as backend. Plain output is $columns.

    Example: extcli trivia leaderboard
    """
    session.output.show(session.service(BACKEND).get("curated_poll_leaderboard"), LEADERBOARD)


@command(app)
def join(session: Session) -> None:
    """Join the team of the channel, unless the caller has a team. Prints the caller's team. Acts as viewer:U1.

    Example: extcli trivia join --channel 1001
    """
    session.output.show(session.service(VIEWER).send("POST", "team_membership"), views.SOLE_VALUE)


@command(app)
def team(session: Session) -> None:
    """Print the caller's team, which is a channel. Acts as viewer:U1.

    Example: extcli trivia team --as viewer:U7
    """
    session.output.show(session.service(VIEWER).get("team_membership"), views.SOLE_VALUE)


def _question_if_any(service: Service, question: str) -> Json:
    """Return the question, or an empty object if there is none."""
    response = service.find("curated_poll", id=question)
    return {} if response is None else dict(document_of(response, {"options?": ([{"id": str}], None)}))
