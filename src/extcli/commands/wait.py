"""`extcli wait`: waits until the service is ready, or until a condition is met. `extcli expect`: checks it now, or what
production would have done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from emulator.contract.names import MARK_HEADER
from extcli import clock
from extcli.cli import argument, command, flag, noun, noun_and_command
from extcli.cli.options import parameters_of, replace_parameters
from extcli.commands.conditions import CONDITIONS, Condition
from extcli.errors import CliError, ExpectationFailed, Refused, Unreachable, UsageError, error_member
from extcli.output import views
from extcli.output.columns import Column, listing
from extcli.output.sanitize import visible
from extcli.parity import VERDICTS_SHAPE, RuleSelection, verdict_lines
from extcli.reading import Response, document_of, expect_shape
from extcli.session import VIEWER, Session

_CHECK_SECONDS = 0.1
"""Seconds between two looks at a service that is not ready."""
_LONGEST_CALL = 50.0 if clock.LONGEST_WAIT is None else 1.0
"""Seconds of one call. The service allows 60."""
_FIRST_CALL = 1.0
"""Seconds before a wait is reported."""
_LATE_SECONDS = 10.0
"""Seconds that a response may be late."""

_OUTCOME = {"met": bool, "wanted": dict, "found": dict, "changes": [dict]}
"""The shape of the response of `GET /_emulator/wait`."""


def _wait_until_ready(session: Session) -> None:
    """Wait until the service is ready, or until a condition is met.

    Waits at most for --timeout (default 30s). Without a condition, exits 3 if the service was
    unreachable all the time, and 7 if it was not ready or is not an extension service. With a
    condition, exits 7 if the condition is not met in time, and prints what was found and the last
    changes. The command ends as soon as the change is saved.

    \b
    Examples:
      extcli serve & extcli wait --timeout 5s
      extcli wait poll lunch --count 3 --timeout 5s
    """
    timeout, announced = session.resolver.timeout(), False
    deadline = clock.elapsed() + timeout
    answered: CliError | None = None
    while failure := _why_not_ready(session, deadline):
        if isinstance(failure, ExpectationFailed):
            answered = failure
        elif not isinstance(failure, Unreachable):
            raise failure
        if clock.elapsed() + _CHECK_SECONDS > deadline:
            raise answered or failure
        if not announced:
            _report_wait(session, timeout, f"{session.resolver.url()} to be ready")
            announced = True
        clock.sleep(_CHECK_SECONDS)


def _why_not_ready(session: Session, deadline: float) -> CliError | None:
    """Return the error that says why the service is not ready, and what to do; `None` if it is ready."""
    from extcli.doctor.service import CHECK_URL, ServiceKind, probe

    session.http.set_timeout(max(deadline - clock.elapsed(), _CHECK_SECONDS))
    found = probe(session.http)
    if found.error or found.ready:
        return found.error
    fix = "" if found.kind is ServiceKind.EMULATOR else CHECK_URL
    return ExpectationFailed(f"{session.resolver.url()} answers, but is not ready", why=found.reason, fix=fix)


def _report_wait(session: Session, seconds: float, what: str) -> None:
    """Report what the command waits for, and how long at most. With -o json, standard error has only an error."""
    if not session.wants_json:
        session.output.report(f"waiting up to {seconds:g} s for {what}")


app = noun_and_command(_wait_until_ready)


def _add_conditions(app: typer.Typer, *, waits: bool) -> None:
    """Add a verb for each condition to a group. It `waits` until the condition is met, or checks it once."""
    for verb, function in CONDITIONS.items():
        command(app, verb)(_command_for(function, waits))


def _command_for(condition: Callable[..., Condition], waits: bool) -> Callable[..., None]:
    @wraps(condition)
    def run(session: Session, **values: Any) -> None:
        _wait_until_met(session, condition(session, **values), session.resolver.timeout() if waits else 0)

    return replace_parameters(run, parameters_of(condition))


def _wait_until_met(session: Session, condition: Condition, seconds: float) -> None:
    """Wait until a condition is met, at most `seconds`. Raises `ExpectationFailed`."""
    deadline = clock.elapsed() + seconds
    query = {"for": condition.subject, "id": condition.id, **condition.parameters}
    what = f"{condition.subject} {condition.id}".removesuffix(" *")
    if condition.has_scope:
        channel = session.channel(VIEWER)
        query |= {"client_id": session.resolver.client_id(), "channel_id": channel}
        what += f" in channel {channel}" if channel else ""
    response, outcome = _outcome_within(session, query, min(seconds, _FIRST_CALL))
    if seconds > _FIRST_CALL and not outcome["met"]:
        _report_wait(session, seconds, what)
    while not outcome["met"] and (left := deadline - clock.elapsed()) > 0:
        response, outcome = _outcome_within(session, query, min(left, _LONGEST_CALL))
    session.output.show(response, views.OUTCOME)
    if not outcome["met"]:
        what = f"not met{f' within {seconds:g} s' if seconds else ''}: {what}"
        facts = {"what": what, **{name: outcome[name] for name in ("wanted", "found", "changes")}}
        with expect_shape(response):
            lines = views.outcome_lines(outcome, condition.id)
        raise ExpectationFailed(visible(what), details=lines, facts=facts)


def _outcome_within(session: Session, query: dict[str, Any], seconds: float) -> tuple[Response, dict[str, Any]]:
    """Return the outcome of a condition, once it is met or after so many seconds, and the response that has it."""
    session.http.set_timeout(seconds + _LATE_SECONDS)
    try:
        response = session.control().get("wait", **query, timeout=round(seconds * 1000))
    except Refused as refused:
        if refused.status == 400:
            raise UsageError("the condition is invalid", why=error_member(refused.body, "info")) from None
        raise
    return response, document_of(response, _OUTCOME)


_add_conditions(app, waits=True)


@command(app)
def mark(session: Session) -> None:
    """Print the number of the latest change, for --since.

    Example: extcli wait mark
    """
    response = session.control().probing().get("clock")
    mark = response.headers.get(MARK_HEADER)
    if mark is None:
        raise UsageError(
            f"{session.resolver.url()} has no mark", why="only a single-process emulator counts its changes"
        )
    with expect_shape(response):
        session.output.show_value(int(mark), views.JSON_VALUE)


_VERDICTS = listing(
    "rules",
    Column("rule"),
    Column("verdict"),
    Column("count"),
    Column("first request", lambda each: each["examples"][0]["request_id"]),
    Column("latest request", lambda each: each["examples"][-1]["request_id"]),
    around=lambda *_: "",  # the error says it
)


expect_app = noun("Check a condition now; exits 7 if it is not met. `extcli wait CONDITION -h` explains each.")
_add_conditions(expect_app, waits=False)


@command(expect_app, prints=_VERDICTS)
def parity(
    session: Session,
    rules: str = argument("RULE,…", "The rules, or all but !RULE; `rate`: both rate limits [all but unknown].", ""),
    whole: bool = flag("--service", "Check all namespaces, since the service started."),
) -> None:
    """Expect that production would respond as the sandbox did.

    Otherwise exits 7, and lists what production would have done differently since the namespace was
    last reset. The rule `unknown` counts only if you name it: without --extensions, the service
    cannot tell whether production accepts a token.

    Plain output is $columns.

    \b
    Examples:
      extcli expect parity
      extcli expect parity stage,rate,unknown
      extcli expect parity '!lifetime'
    """
    selection = RuleSelection(rules)
    response = session.control().get("parity", of="service" if whole else "namespace")
    found = selection.failures(document_of(response, VERDICTS_SHAPE))
    session.output.show_value({"rules": found}, _VERDICTS)
    if found:
        lines = [visible(line) for line in verdict_lines(found)]
        raise ExpectationFailed("production would have acted differently", details=lines)
