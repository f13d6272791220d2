"""Listens to events over a socket, and reconnects when the connection is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from extcli import clock
from extcli.api.call import Outage
from extcli.api.websocket import Message
from extcli.errors import CliError
from extcli.realtime import login
from extcli.session import VIEWER, Session

ALL_EVENTS = "*"


class Listener:
    """Listens to events, and reconnects when the connection is lost."""

    def __init__(self, session: Session, events: Sequence[str]) -> None:
        self._session = session
        self._report = session.output.report
        self._events = list(dict.fromkeys(events)) or [ALL_EVENTS]

    def subscribe(self) -> str:
        """Authenticate and subscribe. Returns the identity in words."""
        identity = login.authenticate(self._session, VIEWER)
        for event in self._events:
            # The target `broadcast` allows an event to have the name of any other topic.
            self._session.open_socket().request("subscribe", "broadcast", {"topic_id": event})
        return identity

    def updates(self, deadline: float | None) -> Iterator[Message]:
        """Yield updates until the deadline by `clock.elapsed`. Raises the error of an outage that lasts until then."""
        end = inf if deadline is None else deadline
        outage = Outage(self._report, end)
        while (left := end - clock.elapsed()) > 0:
            try:
                if outage.since is not None:
                    self._session.reconnect(left)
                    identity = self.subscribe()
                    self._report(f"gap: not connected for {outage.end():.1f} s; events in between are lost")
                    self._report(f"now listening {identity}")
                update = self._session.open_socket().next_update(deadline)
            except CliError as error:
                if outage.wait(error):
                    continue
                if outage.since is not None:
                    self._report(f"gap: not connected for {outage.end():.1f} s; events since then are lost")
                raise
            if update is None:
                return
            yield update
