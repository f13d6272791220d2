"""`extcli wait`: blocks until something is so."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli import clock
from extcli.errors import CliError, Declined, Misused, Unmet, Unreachable
from extcli.options import shared
from extcli.session import Session

_PAUSE = 0.1


@shared
def wait(
    session: Session,
    ready: Annotated[bool, typer.Option("--ready", help="Until the service answers the next request.")] = False,
) -> None:
    """Wait until the service is ready, at most --timeout (30s unless told).

    Exit code 3 if nobody ever answered, 7 if somebody did but was not ready.

    Example: extcli serve & extcli wait --ready --timeout 5s
    """
    if not ready:
        raise Misused("nothing to wait for", fix="extcli wait --ready")
    deadline = clock.elapsed() + session.sources.timeout()
    answered: Unmet | None = None
    while True:
        try:
            session.open_service().is_ready()
            return
        except Declined as error:
            if error.status == 404:
                # A deployment has no readiness path; that it answers is all there is to know.
                return
            answered = Unmet(f"{session.sources.url()} answers, but was not ready in time", why=error.why)
            failure: CliError = answered
        except Unreachable as error:
            failure = answered or error
        if clock.elapsed() + _PAUSE > deadline:
            raise failure
        clock.sleep(_PAUSE)
