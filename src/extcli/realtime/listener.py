"""Follows events over the socket as long as is wanted, and connects again when the connection is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from random import uniform

from extcli import clock
from extcli.api.envelope import Message
from extcli.errors import CliError, ServerError, Unreachable
from extcli.realtime import login
from extcli.session import VIEWER, Session

ALL = "*"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_STEADY = 10.0
"""Seconds for which a connection lasts that was worth making: one that breaks off sooner is the same trouble still."""
_PATIENCE = 120.0


class Listener:
    """One listener, over as many connections as it takes."""

    def __init__(self, session: Session, events: Sequence[str], *, give_up_after: float = _PATIENCE) -> None:
        self._session = session
        self._events = list(dict.fromkeys(events)) or [ALL]
        self._give_up_after = give_up_after
        self._attempts = 0
        self._connected_at = -inf
        self._trouble_since = inf

    def begin(self) -> str:
        """Authenticate and follow the events; returns as whom."""
        how = login.introduce(self._session, VIEWER)
        for event in self._events:
            # By this target an event may have the name of anything else that can be followed.
            self._session.websocket.ask("subscribe", "broadcast", {"topic_id": event})
        return how

    def heard(self, deadline: float | None) -> Iterator[Message]:
        """Updates as they come, to the deadline by `clock.elapsed`; raises the error that lasts up to it."""
        while deadline is None or clock.elapsed() < deadline:
            try:
                update = self._session.websocket.update(deadline)
            except CliError as error:
                self._connect_again(error, inf if deadline is None else deadline)
                continue
            if update is None:
                return
            yield update

    def _connect_again(self, lost: CliError, deadline: float) -> None:
        """Returns when events are heard again, and says for how long they were not."""
        if not _may_pass(lost):
            raise lost
        since = clock.elapsed()
        if since - self._connected_at >= _STEADY:
            self._attempts, self._trouble_since = 0, since
        until = min(deadline, self._trouble_since + self._give_up_after)
        self._session.output.report(f"lost: {lost.what}; trying again")
        while _may_pass(lost):
            clock.sleep(max(min(_pause(self._attempts), until - clock.elapsed()), 0))
            self._attempts += 1
            left = until - clock.elapsed()
            if left <= 0:
                break
            try:
                self._session.reconnect(left)
                self.begin()
            except CliError as error:
                lost = error
                continue
            self._connected_at = clock.elapsed()
            self._report_gap(since, "events in between are lost")
            return
        self._report_gap(since, "events since are lost")
        raise lost

    def _report_gap(self, since: float, ending: str) -> None:
        self._session.output.report(f"gap: not connected for {clock.elapsed() - since:.1f} s; {ending}")


def _may_pass(error: CliError) -> bool:
    """Whether it may be otherwise in a moment; a refusal is for ever."""
    return error.exit_code in (Unreachable.exit_code, ServerError.exit_code)


def _pause(attempts: int) -> float:
    """Seconds before the next attempt: twice as long each time, and never in step with other listeners."""
    return uniform(0.5, 1) * min(_FIRST_PAUSE * 2.0 ** min(attempts, 16), _LONGEST_PAUSE)
