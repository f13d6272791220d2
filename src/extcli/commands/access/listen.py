"""`extcli listen`: prints events when they arrive."""

from __future__ import annotations

from extcli import clock
from extcli.cli import argument, option, shared
from extcli.errors import ExpectationFailed
from extcli.session import Session


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
    from extcli.output.format import flush
    from extcli.output.sanitize import visible
    from extcli.realtime import views
    from extcli.realtime.listener import Listener

    listener = Listener(session, events or [])
    identity = listener.begin()
    session.output.report(f"ready: {visible(', '.join(events)) if events else 'all events'}, {identity}")
    deadline = clock.elapsed() + session.resolver.timeout() if session.resolver.flags.timeout else None
    received = 0
    for update in listener.updates(deadline):
        session.output.show_value(views.event_of(update), views.EVENT)
        flush()
        received += 1
        if received == count:
            return
    if count is not None:
        what = f"received {received} of {count} events in time"
        raise ExpectationFailed(what, fix="use a longer --timeout, or start listening before they are sent")
