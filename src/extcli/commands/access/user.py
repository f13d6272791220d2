"""`extcli user`: the caller's identity, and the users who shared theirs."""

from __future__ import annotations

from extcli.cli import command, noun, option
from extcli.commands.data.listing import show_all
from extcli.output import views
from extcli.session import BACKEND, VIEWER, Session

app = noun("Users: the caller's identity, and the users who shared theirs.")


@command(app)
def info(session: Session) -> None:
    """Print what the service knows about the caller. Acts as viewer:U1.

    Succeeds once the token is valid, so a game can repeat it until its PIN is entered.

    Also reports the role and user it acts as, and where the token comes from. A stored link is not
    used automatically; get a token with `link token`.

    \b
    Examples:
      extcli user info --as broadcaster
      EXTCLI_TOKEN=$(extcli link token) extcli user info
    """
    session.output.show(session.service(VIEWER).read_user_info(), views.RECORD)
    credentials = session.credentials(VIEWER)
    identity = "" if credentials.given else f" as {session.resolver.identity(VIEWER)},"
    session.output.note(f"acted{identity} with {credentials.origin}")


@command(app, "list")
def list_users(
    session: Session,
    cursor: str | None = option("--cursor CURSOR", "Print only this page of ids. Pages are numbered from 0."),
) -> None:
    """List the ids of users who shared their identity. Acts as backend.

    Example: extcli user list > ids.txt
    """
    service = session.service(BACKEND)
    if cursor is None:
        show_all(session, service.list_user_ids, "results", views.USER_IDS, next="next?")
    else:
        session.output.show(service.list_user_ids(cursor), views.USER_IDS)
