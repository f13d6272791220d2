"""`extcli status` and `stop`: the services of this machine that run under a name."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import partial

from extcli import clock
from extcli.cli import Watch, argument, shared, show_live
from extcli.commands.connect import shell_variables
from extcli.config.flags import Flags
from extcli.config.resolver import Resolver
from extcli.config.urls import reachable_url
from extcli.errors import ExpectationFailed, Unreachable
from extcli.output import times
from extcli.output.columns import Column, listing
from extcli.output.format import Format
from extcli.output.sanitize import visible
from extcli.running import registry
from extcli.session import Session

_CHECK_SECONDS = 0.02


_SERVICES = listing(
    "services",
    Column("name"),
    Column("pid"),
    Column("url", text=lambda url: visible(url or "starting")),
    Column("started", heading="up", text=lambda at: times.duration_text(max(clock.now() - at, 0) // 1_000 * 1_000)),
    Column("environment"),
    Column("data"),
    else_shown="no named service runs: `extcli serve --name NAME` starts one",
)


@partial(shared, has_env=True, prints=_SERVICES)
def status(
    session: Session, name: str | None = argument("NAME", "Show only this service.", None), watch: Watch = False
) -> None:
    """List the services of this machine that run under a name (`serve --name`).

    -o env prints variables that point other extcli commands at the named service, or at the only
    one. Exits 7 if no service runs. Plain output is $columns, with the start in Unix ms.

    \b
    Examples:
      extcli status
      eval "$(extcli status -o env)"
    """
    if session.output.format is Format.ENV and not watch:
        service = registry.choose_service(registry.named_services(), name)
        if not service.url:
            raise ExpectationFailed(f"{service.name} is starting")
        flags = Flags(url=reachable_url(service.url), client_id=session.resolver.flags.client_id)
        session.output.line(shell_variables(Resolver(flags, os.environ)))
        return

    def show() -> None:
        found = registry.named_services()
        chosen = found if name is None else [registry.choose_service(found, name)]
        session.output.show_value({"services": [asdict(each) for each in chosen]}, _SERVICES)

    show_live(session, show, watch=watch)


@shared
def stop(
    session: Session,
    name: str | None = argument("NAME", "The service's name. Default: the only service that runs.", None),
) -> None:
    """Stop a service that runs under a name (`serve --name`), and wait until its port is free.

    Exits 7 if the service does not run, 2 if several run and you name none, 3 if it does not stop
    within --timeout.

    \b
    Examples:
      extcli stop
      extcli stop web --timeout 10s
    """
    service = registry.choose_service(registry.named_services(), name)
    deadline = clock.elapsed() + session.resolver.timeout()
    registry.ask_to_stop(service)
    while registry.is_running(service):
        if clock.elapsed() > deadline:
            raise Unreachable(f"{service.name} (pid {service.pid}) did not stop in time", fix=f"kill -9 {service.pid}")
        clock.sleep(_CHECK_SECONDS)
    session.output.note(f"{service.name} (pid {service.pid}) has stopped")
