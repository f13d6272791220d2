"""`extcli wait`: waits until the service is ready, or until a condition is met."""

from __future__ import annotations

from extcli import bounded_json, clock
from extcli.cli import command, flag, noun_and_command
from extcli.commands.checks.conditions import Condition, add_conditions
from extcli.errors import CliError, ErrorResponse, ExpectationFailed, TooLarge, Unreachable, is_from_service
from extcli.output import views
from extcli.session import Session

_INTERVAL = 0.1
_NOT_OURS = "check that --url (EXTCLI_URL) is an extension service"


def _ready(session: Session, ready: bool = flag("--ready", "", True, hidden=True)) -> None:
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
    answered: ExpectationFailed | None = None
    while True:
        try:
            why, fix = _problem(session, deadline)
            if not why:
                return
            answered = ExpectationFailed(f"{session.resolver.url()} answers, but is not ready", why=why, fix=fix)
            failure: CliError = answered
        except Unreachable as error:
            failure = answered or error
        if clock.elapsed() + _INTERVAL > deadline:
            raise failure
        if not announced:
            from extcli.commands.checks.outcomes import report_wait

            report_wait(session, timeout, f"{session.resolver.url()} to be ready")
            announced = True
        clock.sleep(_INTERVAL)


def _limit_time(session: Session, deadline: float) -> None:
    """Let the next call end at the deadline."""
    session.http.set_timeout(max(deadline - clock.elapsed(), _INTERVAL))


def _problem(session: Session, deadline: float) -> tuple[str, str]:
    """Return why the service is not ready, and what to do; two empty strings if it is ready."""
    _limit_time(session, deadline)
    try:
        response = session.control().probing().is_ready()
        return (
            ("", "")
            if bounded_json.members(response.content).get("status") == "ready"
            else ("unexpected response", _NOT_OURS)
        )
    except ErrorResponse as error:
        if error.status == 404:
            return _problem_of_deployment(session, deadline)
        return error.why or error.what, "" if error.status >= 500 else _NOT_OURS
    except TooLarge as error:
        return f"its response is too large: {error.why}", _NOT_OURS


def _problem_of_deployment(session: Session, deadline: float) -> tuple[str, str]:
    """Check a deployment, which has no readiness path, by its error for a call without credentials."""
    _limit_time(session, deadline)
    try:
        response = session.anonymous_service().probing().read_user_info()
        return ("", "") if bounded_json.members(response.content) else ("unexpected response", _NOT_OURS)
    except ErrorResponse as error:
        if error.status == 401 and is_from_service(error.body):
            return "", ""
        return error.why or error.what, _NOT_OURS


def _wait_until_met(session: Session, condition: Condition) -> None:
    from extcli.commands.checks.outcomes import wait_until_met

    wait_until_met(session, condition, session.resolver.timeout())


def ready(session: Session) -> None:
    """Wait until the service is ready, like `extcli wait` alone.

    Example: extcli wait ready --timeout 5s
    """
    _ready(session, ready=True)


def mark(session: Session) -> None:
    """Print the number of the latest change, for --since.

    Example: extcli wait mark
    """
    from extcli.commands.checks.outcomes import read_mark

    session.output.show_value(read_mark(session), views.DATA)


app = noun_and_command(_ready)
command(app)(ready)
add_conditions(app, "wait", "Wait for", _wait_until_met)
command(app)(mark)
