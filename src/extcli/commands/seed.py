"""`extcli seed`: files with the data that a test begins with."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from typing import Annotated

import typer

from extcli.cli.shared_options import command, noun
from extcli.errors import Refused, UnexpectedAnswer
from extcli.output import views
from extcli.output.printer import SHAPE_ERRORS
from extcli.seeds import read
from extcli.session import Session

app = noun("Seeds: files with the data that a test begins with.")

File = Annotated[str, typer.Argument(metavar="FILE", help="The seed: TOML, or JSON if its name ends in .json; or -.")]


@command(app)
def check(session: Session, file: File) -> None:
    """Check a seed and the files it names. Sends nothing.

    Each error has its line, column and field, and says what is allowed. Limits that the
    options of `serve` change are checked by `seed apply` only.

    Example: extcli seed check seed.toml
    """
    seed = read(file, os.environ)
    session.output.note(f"{seed.name} is valid")


@command(app)
def example(session: Session) -> None:
    """Print an example of a seed with everything that it can contain.

    Example: extcli seed example > seed.toml
    """
    typer.echo(files("extcli.seeds").joinpath("example.toml").read_text("utf-8"), nl=False)


@command(app, loses="data are replaced, and the clock may move")
def apply(session: Session, file: File) -> None:
    """Put the data of a seed into the service: all of it, or nothing.

    Replaces what the service has under the same ids; everything else stays. A namespace
    is chosen by its URL. To begin with nothing else, run `extcli reset` first.

    \b
    Examples:
      extcli seed apply seed.toml
      extcli seed apply seed.toml --url http://127.0.0.1:8282/_ns/blue
    """
    seed = read(file, os.environ)
    try:
        answer = session.anonymous_service().apply_seed(seed.body)
    except Refused as error:
        if details := _problems(error.body):
            raise seed.refused(details) from None
        raise
    try:
        result = answer.json()
        seed.save_tokens([link.pop("refresh") for link in result["links"]])
    except SHAPE_ERRORS as error:
        raise UnexpectedAnswer(answer) from error
    session.output.show_value(result, views.SEEDED)


def _problems(body: bytes) -> list[str]:
    """Return the problems with a seed in the body of an error answer; none if the answer is about something else."""
    try:
        document = json.loads(body)
        is_about_seed = document["reason"] in ("Invalid seed", "Invalid body")
        return [error["detail"] for error in document["errors"]] if is_about_seed else []
    except SHAPE_ERRORS:
        return []
