"""Asks the service for the outcome of a condition, and prints it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from emulator.contract.names import MARK
from extcli import clock
from extcli.api.http import Response
from extcli.commands.checks.conditions import Condition, scope_of
from extcli.errors import ExpectationFailed, Refused, UnexpectedResponse, UsageError, member_of
from extcli.output.printer import View
from extcli.output.views import cut_line, outcome_lines
from extcli.reading.shapes import document_of
from extcli.session import Session

_LONGEST_CALL = 50.0 if clock.LONGEST_WAIT is None else 1.0
"""Seconds of one call. The service allows 60."""
_FIRST_CALL = 1.0
"""Seconds before a wait is reported."""
_MARGIN = 10.0
"""Seconds that a response may be late."""

_OUTCOME = {
    "met": bool,
    "wanted": dict,
    "found": dict,
    "changes": [
        {
            "at": int,
            "kind": str,
            "did": str,
            "id": (str, None),
            "user": (str, None),
            "channel_id": (str, None),
            "value": object,
        }
    ],
}
"""The shape of the response of `GET /_emulator/wait`."""

OUTCOME = View(table=lambda outcome: "", rows=lambda outcome: [])
"""A condition that is met prints nothing, except as JSON."""


def wait_until_met(session: Session, condition: Condition, seconds: float) -> None:
    """Wait until a condition is met, at most `seconds`. Raises `ExpectationFailed`."""
    deadline = clock.elapsed() + seconds
    scope = scope_of(session) if condition.has_scope else {}
    what = f"{condition.shown} in channel {scope['channel_id']}" if "channel_id" in scope else condition.shown
    response = _request_outcome(session, condition, scope, min(seconds, _FIRST_CALL))
    if seconds > _FIRST_CALL and not _is_met(response):
        report_wait(session, seconds, what)
    while not _is_met(response) and (left := deadline - clock.elapsed()) > 0:
        response = _request_outcome(session, condition, scope, min(left, _LONGEST_CALL))
    session.output.show(response, OUTCOME)
    if not _is_met(response):
        outcome = document_of(response, _OUTCOME)
        what = f"not met{f' within {seconds:g} s' if seconds else ''}: {what}"
        facts = {"what": what, **{name: outcome[name] for name in ("wanted", "found", "changes")}}
        raise ExpectationFailed(cut_line(what, 72), details=outcome_lines(outcome, condition.id), facts=facts)


def report_wait(session: Session, seconds: float, what: str) -> None:
    """Report what the command waits for, and how long at most. With -o json, standard error has only an error."""
    if not session.wants_json:
        session.output.report(f"waiting up to {seconds:g} s for {what}")


def _is_met(response: Response) -> bool:
    return bool(document_of(response, _OUTCOME)["met"])


def read_mark(session: Session) -> int:
    """Return the mark of the latest change. Raises `UsageError` if the service has none."""
    try:
        response = session.control().probing().read_clock()
    except Refused as refused:
        raise _without_control(session) if refused.status == 404 else refused from None
    mark = response.headers.get(MARK)
    if mark is None:
        raise UsageError(f"{session.resolver.url()} has no marks", why="only an emulator in one process has them")
    if not re.fullmatch("[0-9]{1,18}", mark):
        raise UnexpectedResponse(response, f"the header {MARK} must be a whole number")
    return int(mark)


def _request_outcome(session: Session, condition: Condition, scope: Mapping[str, str], seconds: float) -> Response:
    query = {"for": condition.subject, "id": condition.id, **scope, **condition.parameters}
    session.http.set_timeout(seconds + _MARGIN)
    try:
        return session.control().wait({**query, "timeout": round(seconds * 1000)})
    except Refused as refused:
        if refused.status == 404:
            raise _without_control(session) from None
        if refused.status == 400:
            raise UsageError("the condition is wrong", why=member_of(refused.body, "info")) from None
        raise


def _without_control(session: Session) -> UsageError:
    return UsageError(
        f"{session.resolver.url()} has no control API, so it cannot wait for a condition",
        why="only an emulator in sandbox has one",
        fix="`extcli listen EVENT --count N --timeout 5s` waits for events of any service",
    )
