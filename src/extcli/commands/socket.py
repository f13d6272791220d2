"""`extcli socket`: sends requests over the WebSocket, and lists, closes and stalls the sockets of a service.
`extcli listen`: prints events when they arrive.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

from extcli import clock
from extcli.cli import Watch, argument, command, confirm, flag, noun, option, shared, show_live
from extcli.cli.confirm import Yes
from extcli.cli.json_input import read_json
from extcli.errors import ExpectationFailed, UsageError
from extcli.output import times, views
from extcli.output.columns import Column, Table, listing, safe_text
from extcli.output.format import flush
from extcli.output.printer import RenderableType
from extcli.output.sanitize import json_text, visible, visible_lines
from extcli.session import Session

app = noun("The WebSocket: send requests, print updates, list and close sockets.")

SocketNumber = Annotated[int | None, argument("N", "The socket's number in `socket list`.")]
AllSockets = Annotated[bool, flag("--all", "Apply to all open sockets.")]
NoAuth = Annotated[bool, flag("--no-auth", "Send the request without authenticating first.")]


def _topics_below(document: dict[str, Any], table: Table) -> RenderableType:
    """Add the topics of each socket below the table, because there may be many."""
    lines = []
    for each in document["sockets"]:
        name = f"{each['number']} (stalled)" if each["stalled"] else str(each["number"])
        lines.append(f"{name} subscribes to {', '.join(each['subscriptions']) or 'nothing'}")
    return views.stack(table, visible_lines("\n".join(lines)))


SOCKETS = listing(
    "sockets",
    Column("number", heading="", right=True),
    Column("kind"),
    Column("client id", "client_id"),
    Column("role"),
    Column("channel", "channel_id"),
    Column("", "user_id", "user", safe_text),
    Column("in", "requests", right=True),
    Column("out", "frames", right=True),
    Column("unread", right=True),
    Column("", "opened_at", "opened", lambda at: times.utc_text(at)[11:19]),
    Column("state", lambda each: "stalled" if each["stalled"] else "open", in_table=False),
    Column("subscriptions", lambda each: " ".join(each["subscriptions"]), in_table=False),
    Column("user", "user_id", in_table=False),
    else_shown="no open sockets",
    around=_topics_below,
)
SELECTED_SOCKETS = listing("sockets", Column("number", str, ""), else_shown="no open sockets")
"""The numbers of sockets that were closed, stalled or released."""


@command(app)
def send(
    session: Session,
    action: str = argument("ACTION", "The action, such as get, set, patch or subscribe."),
    target: str = argument("TARGET", "The target of the action, such as state, config or poll.", ""),
    data: str | None = option("--data JSON|@FILE|-", "The data of the request, as JSON."),
    wait: int = option("--wait N", "After the reply, wait for N updates and print each as one line of JSON.", 0, min=0),
    no_auth: NoAuth = False,
    yes: Yes = False,
) -> None:
    """Send one request, and print the data of its reply. Acts as broadcaster.

    Uses a stored link (`extcli pin login`) if there is one, unless you pass --as or a token. With
    --wait, exits 7 if fewer updates arrive before --timeout.

    \b
    Examples:
      extcli socket send get state --data '{"state_id": "channel"}'
      extcli socket send subscribe poll --data '{"topic_id": "*"}' --wait 1
    """
    if action == "authenticate" and data is not None and data != "-" and not data.startswith("@"):
        why = "process lists and shell histories show them"
        raise UsageError("PINs and tokens cannot be arguments", why=why, fix="pipe the data in: --data -")
    if action in ("set", "delete"):
        confirm.ask_in_production(session, f"{action} {target} replaces or deletes data", yes=yes, over_socket=True)
    document = None if data is None else read_json(data, "--data")
    _connect_and_log_in(session, no_auth)
    reply = session.open_socket().request(action, target, document)
    if not wait:
        session.output.show_value(reply.data, views.JSON_VALUE)
        return
    session.output.line(json_text(reply.data))
    _print_updates(session, wait)


@command(app)
def repl(session: Session, no_auth: NoAuth = False, yes: Yes = False) -> None:
    """Send requests that you type, and print replies and updates.

    A line is `ACTION [TARGET] [JSON]` or a complete frame; `help` shows examples, `exit` ends. Each
    message is printed as one line of JSON. Requests can also be piped in: then the command exits 4
    if one is refused, and production requires --yes.

    \b
    Examples:
      extcli socket repl
      echo 'get config {"config_id": "channel"}' | extcli socket repl
    """
    from extcli.realtime.repl import Repl

    if session.dry_run:
        raise UsageError("--dry-run does not work in a session", fix="use `extcli socket send … --dry-run`")
    if not sys.stdin.isatty():
        confirm.ask_in_production(session, "piped requests may replace or delete data", yes=yes, over_socket=True)
    elif why := session.why_production(over_socket=True):
        session.output.report(f"{why}; requests are sent without confirmation")
    _connect_and_log_in(session, no_auth)
    Repl(session.open_socket(), session.output).run()


@command(app, "list", prints=SOCKETS)
def list_sockets(session: Session, watch: Watch = False) -> None:
    """List the open sockets of the emulator.

    Shows the sockets of games and pages, and the topics to which they subscribe. --client-id and
    --channel limit the list. Plain output is $columns, with messages received and sent, unread
    bytes, and `stalled` or `open`.

    \b
    Examples:
      extcli socket list
      extcli socket list --watch
    """
    flags = session.resolver.flags
    control = session.control()
    limits = {"client_id": flags.client_id, "channel_id": flags.channel}
    show_live(session, lambda: session.output.show(control.get("sockets", **limits, limit=1000), SOCKETS), watch=watch)


@command(app)
def close(
    session: Session,
    number: SocketNumber = None,
    every: AllSockets = False,
    code: int = option("--code CODE", "The close code: 1000 to 1003, 1007 to 1014 or 3000 to 4999.", 1012),
    reason: str = option("--reason TEXT", "The close reason that the client receives.", ""),
) -> None:
    """Close a socket of the emulator.

    Use it to test how a client reconnects. Prints the number of the socket.

    \b
    Examples:
      extcli socket close 12
      extcli socket close --all --code 1001 --reason "going away"
    """
    closing = {**_selected_sockets(number, every), "code": code, "reason": reason}
    session.output.show(session.control().post("sockets/close", closing), SELECTED_SOCKETS)


@command(app)
def stall(
    session: Session,
    number: SocketNumber = None,
    every: AllSockets = False,
    release: bool = flag("--release", "End the stall: the service reads and writes the socket again."),
) -> None:
    """Stall a socket of the emulator, or release it.

    The service stops reading and writing the socket, as on a dead network. Messages sent meanwhile
    arrive when you pass --release. `reset` and `socket close` also end a stall. Prints the number
    of the socket.

    \b
    Examples:
      extcli socket stall 12
      extcli socket stall --all --release
    """
    stalling = {**_selected_sockets(number, every), "stalled": not release}
    session.output.show(session.control().post("sockets/stall", stalling), SELECTED_SOCKETS)


def _selected_sockets(number: int | None, every: bool) -> dict[str, object]:
    if (number is None) == (not every):
        raise UsageError("give a socket's number, or --all", fix="`extcli socket list` shows the numbers")
    return {"all": True} if every else {"socket": number}


def _connect_and_log_in(session: Session, no_auth: bool) -> None:
    if no_auth or session.dry_run:
        session.open_socket()
        return
    from extcli.realtime import login

    session.output.report(f"authenticated {login.authenticate(session)}")


def _print_updates(session: Session, count: int) -> None:
    deadline = clock.elapsed() + session.resolver.timeout()
    for received in range(count):
        flush()
        update = session.open_socket().next_update(deadline)
        if update is None:
            what = f"received {received} of {count} updates in time"
            raise ExpectationFailed(what, fix="use a longer --timeout, for example 2m")
        session.output.line(json_text(update.document))


@shared
def listen(
    session: Session,
    events: list[str] | None = argument("EVENT", "The names of the events to print. Default: all events.", None),
    count: int | None = option("--count N", "Exit after N events.", min=1),
) -> None:
    """Print events when they arrive, one per line. Acts as broadcaster of a stored link, otherwise as viewer:U1.

    Standard error says `ready` with the identity when listening starts. A lost connection is
    retried for up to two minutes. Standard error then has `lost` with the close code and reason,
    `gap` with the time without a connection, and `now` with the identity if it changed. --quiet
    hides these lines.

    Ends after --count events, or --timeout after `ready`. Exits 7 if fewer than --count events
    arrived, 3 if the service was unreachable at the end. Plain output is `event<TAB>data`.

    \b
    Examples:
      extcli listen
      extcli listen round hint --as viewer:U7 -o jsonl
      extcli listen round --count 1 --timeout 5s
    """
    from extcli.realtime import views
    from extcli.realtime.listener import Listener

    listener = Listener(session, events or [])
    identity = listener.subscribe()
    session.output.report(f"ready: {visible(', '.join(events)) if events else 'all events'}, {identity}")
    deadline = clock.elapsed() + session.resolver.timeout() if session.resolver.flags.timeout else None
    received = 0
    for update in listener.updates(deadline):
        session.output.show_value(views.event_facts(update), views.EVENT)
        flush()
        received += 1
        if received == count:
            return
    if count is not None:
        what = f"received {received} of {count} events in time"
        raise ExpectationFailed(what, fix="use a longer --timeout, or start listening before they are sent")
