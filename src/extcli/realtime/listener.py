"""Listens to events over a socket, and reconnects when the connection is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from random import uniform

from extcli import clock
from extcli.api.envelope import Message
from extcli.errors import CliError, ExitCode
from extcli.realtime import login
from extcli.session import VIEWER, Session

ALL = "*"
_MIN_BACKOFF, _MAX_BACKOFF = 0.1, 5.0
_STABLE = 10.0
"""Seconds after which a connection counts as stable; one lost sooner continues the same outage."""
_GIVE_UP_AFTER = 120.0
"""Seconds of outage after which reconnecting ends."""


class Listener:
    """Listens to events, and reconnects when the connection is lost."""

    def __init__(self, session: Session, events: Sequence[str], *, give_up_after: float = _GIVE_UP_AFTER) -> None:
        self._session = session
        self._events = list(dict.fromkeys(events)) or [ALL]
        self._give_up_after = give_up_after
        self._attempts = 0
        self._connected_at = -inf
        self._outage_since = inf
        self._identity = ""
        """The identity that it listens as, in words. Unless chosen, it changes once a link is stored."""

    def begin(self) -> str:
        """Authenticate and subscribe. Returns the identity in words."""
        self._identity = login.authenticate(self._session, VIEWER)
        for event in self._events:
            # The target `broadcast` allows an event to have the name of any other topic.
            self._session.open_socket().request("subscribe", "broadcast", {"topic_id": event})
        return self._identity

    def updates(self, deadline: float | None) -> Iterator[Message]:
        """Yield updates until the deadline by `clock.elapsed`. Raises the error of an outage that lasts until then."""
        while deadline is None or clock.elapsed() < deadline:
            try:
                update = self._session.open_socket().next_update(deadline)
            except CliError as error:
                self._reconnect(error, inf if deadline is None else deadline)
                continue
            if update is None:
                return
            yield update

    def _reconnect(self, lost: CliError, deadline: float) -> None:
        """Reconnect and report the gap, or raise the last error."""
        if not _is_transient(lost):
            raise lost
        since = clock.elapsed()
        if since - self._connected_at >= _STABLE:
            self._attempts, self._outage_since = 0, since
        until = min(deadline, self._outage_since + self._give_up_after)
        reason = f" ({lost.why})" if lost.why else ""
        self._session.output.report(f"lost: {lost.what}{reason}; trying again")
        while _is_transient(lost):
            longest = min(_MIN_BACKOFF * 2.0 ** min(self._attempts, 16), _MAX_BACKOFF)
            clock.sleep(max(min(uniform(0.5, 1) * longest, until - clock.elapsed()), 0))
            self._attempts += 1
            left = until - clock.elapsed()
            if left <= 0:
                break
            before = self._identity
            try:
                self._session.reconnect(left)
                self.begin()
            except CliError as error:
                lost = error
                continue
            self._connected_at = clock.elapsed()
            self._report_gap(since, "events in between are lost")
            if self._identity != before:
                self._session.output.report(f"now {self._identity}; it was {before}")
            return
        self._report_gap(since, "events since then are lost")
        raise lost

    def _report_gap(self, since: float, ending: str) -> None:
        self._session.output.report(f"gap: not connected for {clock.elapsed() - since:.1f} s; {ending}")


def _is_transient(error: CliError) -> bool:
    return error.exit_code in (ExitCode.UNREACHABLE, ExitCode.SERVICE_FAILED)
