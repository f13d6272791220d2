"""`extcli status` and `stop`: the services of this machine that run under a name."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import partial

from extcli import clock
from extcli.cli import Watch, argument, repeat, shared
from extcli.commands.access.connect import env_lines
from extcli.config.flags import Flags
from extcli.config.resolver import Resolver
from extcli.config.urls import reachable
from extcli.errors import ExpectationFailed, Unreachable
from extcli.output import times
from extcli.output.columns import Column, listing, shown
from extcli.output.format import Format
from extcli.output.sanitize import visible
from extcli.running import registry
from extcli.session import Session

_NO_SERVICES = "no service runs under a name: `extcli serve --name NAME` starts one"


def _uptime(started: int) -> str:
    return times.span(max(clock.now() - started, 0) // 1_000 * 1_000)


_SERVICES = listing(
    "services",
    Column("name", folds=True),
    Column("pid", text=shown),
    Column("url", text=lambda url: visible(url or "starting")),
    Column("started", heading="up", text=_uptime),
    Column("environment"),
    Column("data", folds=True),
    else_shown=_NO_SERVICES,
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
    repeat(session, lambda: _show(session, name), watch=watch)


def _show(session: Session, name: str | None) -> None:
    chosen = registry.running()
    if name is not None or session.output.format is Format.ENV:
        chosen = [registry.the_one(chosen, name)]
    if session.output.format is Format.ENV:
        if not chosen[0].url:
            raise ExpectationFailed(f"{chosen[0].name} is starting")
        flags = Flags(url=reachable(chosen[0].url), client_id=session.resolver.flags.client_id)
        for line in env_lines(Resolver(flags, os.environ)):
            session.output.line(line)
        return
    if not chosen and session.output.format is Format.PLAIN:
        session.output.report(_NO_SERVICES)
    session.output.show_value({"services": [asdict(each) for each in chosen]}, _SERVICES)


_INTERVAL = 0.02


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
    service = registry.the_one(registry.running(), name)
    timeout = session.resolver.timeout()
    deadline = clock.elapsed() + timeout
    registry.ask_to_stop(service)
    while registry.is_running(service):
        if clock.elapsed() > deadline:
            raise Unreachable(
                f"{service.name} (pid {service.pid}) did not stop within {timeout:g} s", fix=f"kill -9 {service.pid}"
            )
        clock.sleep(_INTERVAL)
    session.output.note(f"{service.name} (pid {service.pid}) has stopped")
