"""`extcli reset`: empties the emulator."""

from __future__ import annotations

from extcli.cli.confirm import guarded
from extcli.cli.shared_options import shared
from extcli.output import views
from extcli.session import Session


@shared
@guarded("all data is deleted")
def reset(session: Session) -> None:
    """Delete all data of the emulator, and reset its clock to real time.

    Deletes the stored links to it, too: they are no longer valid.

    Example: extcli reset
    """
    from extcli.realtime import login

    session.output.show(session.anonymous_service().reset(), views.NOTHING)
    session.output.note("deleted all data; the clock shows real time")
    login.delete_links(session)
