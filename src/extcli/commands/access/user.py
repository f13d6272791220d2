"""`extcli user`: the caller's identity, and the users who shared theirs."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli.api.http import Answer
from extcli.cli.shared_options import command, noun
from extcli.commands.data.listing import END, check_progress
from extcli.output import views
from extcli.reading.shapes import document_of
from extcli.session import BACKEND, VIEWER, Session

app = noun("Users: the caller's identity, and the users who shared theirs.")


@command(app)
def info(session: Session) -> None:
    """Print what the service knows about the caller. Acts as viewer:U1.

    Succeeds once the token is valid, so a game can poll it until its PIN is entered.

    Also reports the identity it acts as, and the source of the token. A stored link is not
    used by itself; get a token from it with `token refresh`.

    \b
    Examples:
      extcli user info --as broadcaster
      EXTCLI_TOKEN=$(extcli token refresh) extcli user info
    """
    session.output.show(session.service(VIEWER).read_user_info(), views.RECORD)
    credentials = session.credentials(VIEWER)
    identity = "" if credentials.given else f" as {session.resolver.identity(VIEWER)},"
    session.output.note(f"acted{identity} with {credentials.origin}")


@command(app, "list")
def list_users(
    session: Session,
    cursor: Annotated[str | None, typer.Option(metavar="CURSOR", help="Print only this page; the first is 0.")] = None,
) -> None:
    """List the ids of users who shared their identity. Acts as backend.

    Example: extcli user list > ids.txt
    """
    service = session.service(BACKEND)
    page, seen = cursor or END, set[str]()
    while True:
        answer = service.list_user_ids(page)
        session.output.show(answer, views.USER_IDS)
        page = _next(answer)
        if cursor is not None or page == END:
            return
        check_progress(page, seen, answer)


def _next(answer: Answer) -> str:
    document = document_of(answer, object)
    return str(document.get("next") or END) if isinstance(document, dict) else END
