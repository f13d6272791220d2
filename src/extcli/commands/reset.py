"""`extcli reset`: an empty emulator."""

from __future__ import annotations

from extcli.cli.confirm import guarded
from extcli.cli.shared_options import shared
from extcli.output import views
from extcli.session import Session


@shared
@guarded("all data goes")
def reset(session: Session) -> None:
    """Forget all data of the emulator, and set its clock right.

    Links to it that are kept here are dead with it, and forgotten.

    Example: extcli reset
    """
    from extcli.realtime import login

    session.output.show(session.open_service().reset(), views.NOTHING)
    session.output.note("everything is gone; the clock shows real time")
    login.forget_ended(session)
