"""`extcli ns`: the isolated services under `/_ns/NAME` of an emulator."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from extcli.cli.shared_options import command, noun
from extcli.errors import UsageError
from extcli.output import views
from extcli.session import Session

app = noun("Namespaces: isolated services at URL/_ns/NAME, each with its own data, clock and connections.")

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@command(app, "list")
def list_namespaces(session: Session) -> None:
    """List the namespaces in use. Plain output is one name per line.

    A namespace exists from its first use until `ns rm`. The namespace `default`, at the
    plain URL, is not listed. After a restart, a namespace is listed once it is used again.

    Example: extcli ns list
    """
    _at_root(session)
    session.output.show(session.anonymous_service().list_namespaces(), views.NAMESPACES)


@command(app, loses="the namespace {name} is deleted, with its data, clock and connections")
def rm(session: Session, name: Annotated[str, typer.Argument(metavar="NAME", help="The namespace.")]) -> None:
    """Delete a namespace with its data, clock and connections. The next use creates a new one.

    Example: extcli ns rm blue
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a namespace", why="a name has 1 to 64 letters, digits, '-' and '_'")
    _at_root(session)
    session.output.show(session.anonymous_service().drop_namespace(name), views.NOTHING)
    session.output.note(f"namespace {name} is deleted")


def _at_root(session: Session) -> None:
    """Send requests to the emulator itself, even if the URL is that of one of its namespaces."""
    session.http.url = session.http.url.partition("/_ns/")[0]
