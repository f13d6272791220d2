"""`extcli stop`: stops a service that runs under a name."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Annotated

import typer

from extcli import clock
from extcli.cli.shared_options import shared
from extcli.errors import Unreachable
from extcli.running import registry
from extcli.session import Session

_INTERVAL = 0.02


@shared
def stop(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The service's name. Default: the only one.")
    ] = None,
) -> None:
    """Stop a service that runs under a name (`serve --name`), and wait until its port is free.

    Exits 7 if it does not run, 2 if several run and none is named, 3 if it does not stop
    within --timeout.

    \b
    Examples:
      extcli stop
      extcli stop web --timeout 10s
    """
    service = registry.the_one(registry.running(), name)
    timeout = session.resolver.timeout()
    deadline = clock.elapsed() + timeout
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(service.pid, signal.SIGTERM)
    while registry.is_running(service):
        if clock.elapsed() > deadline:
            raise Unreachable(
                f"{service.name} (pid {service.pid}) did not stop within {timeout:g} s", fix=f"kill -9 {service.pid}"
            )
        clock.sleep(_INTERVAL)
    session.output.note(f"{service.name} (pid {service.pid}) has stopped")
