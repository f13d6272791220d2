"""`extcli socket`: the service's WebSocket, one request or many by hand."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from extcli import clock
from extcli.cli import confirm
from extcli.cli.confirm import Yes
from extcli.cli.json_input import read_json
from extcli.cli.shared_options import command, noun
from extcli.errors import ExpectationFailed, UsageError
from extcli.output import views
from extcli.output.sanitize import json_text
from extcli.session import Session

app = noun("The WebSocket: requests, their replies, and updates of what is followed.")

NoAuth = Annotated[bool, typer.Option("--no-auth", help="Do not authenticate first.")]


@command(app)
def send(
    session: Session,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="get, set, patch, subscribe, create, …")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="state, config, poll, …", show_default=False)] = "",
    data: Annotated[
        str | None, typer.Option("--data", metavar="JSON|@FILE|-", help="The request's data.", show_default=False)
    ] = None,
    wait: Annotated[
        int, typer.Option("--wait", metavar="N", min=0, help="Then print so many updates, one JSON a line.")
    ] = 0,
    no_auth: NoAuth = False,
    yes: Yes = False,
) -> None:
    """Send one request, and print the data of its reply.

    Acts for the channel of a kept link (`extcli pin login`), else as broadcaster, or as
    --as says. With --wait also prints updates, at most for --timeout; exit code 7 if
    they do not come.

    \b
    Examples:
      extcli socket send get state --data '{"state_id": "channel"}'
      extcli socket send subscribe poll --data '{"topic_id": "*"}' --wait 1
    """
    if action == "authenticate" and data is not None and data != "-" and not data.startswith("@"):
        raise UsageError(
            "PINs and tokens are not taken from the command line",
            why="process lists and histories show them",
            fix="pipe the data in: --data -",
        )
    if action in ("set", "delete"):
        confirm.guard(session, f"{action} {target} replaces or deletes", yes=yes, over_socket=True)
    document = None if data is None else read_json(data, "--data")
    _connect(session, no_auth)
    reply = session.websocket.ask(action, target, document)
    if not wait:
        session.output.show_value(reply.data, views.DATA)
        return
    session.output.line(json_text(reply.data))
    _follow(session, wait)


@command(app)
def repl(session: Session, no_auth: NoAuth = False, yes: Yes = False) -> None:
    """Talk to the socket: type requests, see replies and updates.

    A line is `ACTION [TARGET] [JSON]` or a whole frame; every message that arrives is
    one JSON on one line. `help` explains, `exit` ends. Lines may also be piped in: the
    exit code is then 4 if some were refused. Where a profile says production, what is
    piped in needs --yes, whatever it is.

    \b
    Examples:
      extcli socket repl
      echo 'get config {"config_id": "channel"}' | extcli socket repl
    """
    from extcli.realtime.repl import Repl

    if not sys.stdin.isatty():
        confirm.guard(session, "what is piped in may replace or delete", yes=yes, over_socket=True)
    elif confirm.in_production(session):
        session.output.report("this is production, and what is typed here is sent without a question")
    _connect(session, no_auth)
    Repl(session.websocket, session.output).run()


def _connect(session: Session, no_auth: bool) -> None:
    if no_auth:
        _ = session.websocket
        return
    from extcli.realtime import login

    session.output.report(f"authenticated {login.introduce(session)}")


def _follow(session: Session, count: int) -> None:
    from extcli.output.printer import flush

    deadline = clock.elapsed() + session.resolver.timeout()
    for seen in range(count):
        flush()
        update = session.websocket.update(deadline)
        if update is None:
            what = f"{seen} of {count} updates came in time"
            raise ExpectationFailed(what, fix="give them more time with --timeout, for example 2m")
        session.output.line(json_text(update.document))
