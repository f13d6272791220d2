"""`extcli reset`: an empty emulator."""

from __future__ import annotations

from extcli import views
from extcli.consent import guarded
from extcli.options import shared
from extcli.session import Session


@shared
@guarded("all data goes")
def reset(session: Session) -> None:
    """Forget all data of the emulator, and set its clock right.

    Links to it that are kept here are dead with it, and forgotten.

    Example: extcli reset
    """
    from extcli import linking

    session.output.show(session.open_service().reset(), views.NOTHING)
    session.output.note("everything is gone; the clock shows real time")
    linking.forget_ended(session)
