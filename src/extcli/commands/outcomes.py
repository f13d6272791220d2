"""Asks the service for the outcome of a condition, and prints it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from extcli import clock
from extcli.api.http import Answer
from extcli.commands.conditions import Condition, scope_of
from extcli.errors import ExpectationFailed, Refused, UsageError
from extcli.output.outcome_lines import cut, outcome_lines
from extcli.output.printer import View
from extcli.output.sanitize import visible
from extcli.session import Session

_LONGEST_CALL = 50.0
"""Seconds of one call. The service allows 60."""
_MARGIN = 10.0
"""Seconds that an answer may be late."""

OUTCOME = View(table=lambda outcome: "", rows=lambda outcome: [])
"""A condition that is met prints nothing, except as JSON."""


def meet(session: Session, condition: Condition, seconds: float) -> None:
    """Wait until the condition is met, at most for `seconds`. Raises `NotMet`."""
    deadline = clock.elapsed() + seconds
    answer = None
    while answer is None or (not json.loads(answer.content)["met"] and clock.elapsed() < deadline):
        answer = _ask(session, condition, min(max(deadline - clock.elapsed(), 0.0), _LONGEST_CALL))
    session.output.show(answer, OUTCOME)
    outcome = json.loads(answer.content)
    if not outcome["met"]:
        raise NotMet(condition, outcome, seconds)


def _ask(session: Session, condition: Condition, seconds: float) -> Answer:
    query = {"for": condition.subject, "id": condition.id, **scope_of(session), **condition.parameters}
    session.http.set_timeout(seconds + _MARGIN)
    try:
        return session.anonymous_service().wait({**query, "timeout": round(seconds * 1000)})
    except Refused as refused:
        if refused.status == 404:
            raise UsageError(
                f"{session.resolver.url()} has no control API, so it cannot wait for a condition",
                why="only an emulator in sandbox has one",
                fix="`extcli listen EVENT --count N --timeout 5s` waits for events of any service",
            ) from None
        if refused.status == 400:
            raise UsageError("the condition is wrong", why=refused.why) from None
        raise


class NotMet(ExpectationFailed):
    """A condition was not met in time."""

    def __init__(self, condition: Condition, outcome: Mapping[str, Any], seconds: float) -> None:
        self._outcome = outcome
        within = f" within {seconds:g} s" if seconds else ""
        super().__init__(f"not met{within}: {visible(condition.shown)}")

    def lines(self) -> list[str]:
        return [*map(cut, super().lines()), *outcome_lines(self._outcome)]

    def as_json(self) -> dict[str, Any]:
        document = super().as_json()
        document["error"] |= {name: self._outcome[name] for name in ("wanted", "found", "changes")}
        return document
