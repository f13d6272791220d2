"""`extcli listen`: prints events as they arrive."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli import clock
from extcli.cli.shared_options import shared
from extcli.errors import ExpectationFailed
from extcli.session import Session


@shared
def listen(
    session: Session,
    events: Annotated[
        list[str] | None, typer.Argument(metavar="EVENT", help="Which events; else all.", show_default=False)
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", min=1, help="End after so many.", show_default=False)
    ] = None,
) -> None:
    """Print events as they arrive, one on each line. Acts as viewer:U1, or for the channel of a kept link.

    Standard error says `ready` when events are heard from then on. A lost connection is
    made again for up to two minutes, and `gap` says for how long nothing was heard.
    --quiet leaves out both.

    Ends after --count events, or after --timeout from `ready` on: with exit code 7 if
    there were fewer than --count, 3 if the service was not to be reached then. Plain
    output is `event<TAB>data`.

    \b
    Examples:
      extcli listen
      extcli listen round hint --as viewer:U7 -o jsonl
      extcli listen round --count 1 --timeout 5s
    """
    from extcli.output.printer import flush
    from extcli.output.sanitize import visible
    from extcli.realtime import views
    from extcli.realtime.listener import Listener

    listening = Listener(session, events or [])
    how = listening.begin()
    session.output.report(f"ready: {visible(', '.join(events)) if events else 'all events'}, {how}")
    deadline = clock.elapsed() + session.resolver.timeout() if session.resolver.flags.timeout else None
    heard = 0
    for update in listening.heard(deadline):
        session.output.show_value(views.event_of(update), views.EVENT)
        flush()
        heard += 1
        if heard == count:
            return
    if count is not None:
        what = f"{heard} of {count} events came in time"
        raise ExpectationFailed(what, fix="give them more time with --timeout, or listen before they are sent")
