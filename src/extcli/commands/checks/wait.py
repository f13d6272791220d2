"""`extcli wait`: waits until the service is ready, or until a condition is met."""

from __future__ import annotations

from extcli import clock
from extcli.cli import command, noun_and_command
from extcli.commands.checks.conditions import Condition, add_conditions
from extcli.errors import CliError, ExpectationFailed, Unreachable
from extcli.output import views
from extcli.session import Session

_INTERVAL = 0.1


def _ready(session: Session) -> None:
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


def _problem(session: Session, deadline: float) -> tuple[str, str]:
    """Return why the service is not ready, and what to do; two empty strings if it is ready. Raises `Unreachable`."""
    from extcli.doctor.service import NOT_OURS, Kind, probe

    session.http.set_timeout(max(deadline - clock.elapsed(), _INTERVAL))
    found = probe(session.http)
    if found.error:
        raise found.error
    return ("", "") if found.ready else (found.reason, "" if found.kind is Kind.EMULATOR else NOT_OURS)


def _wait_until_met(session: Session, condition: Condition, *, now: bool) -> None:
    from extcli.commands.checks.outcomes import wait_until_met

    wait_until_met(session, condition, 0 if now else session.resolver.timeout())


def mark(session: Session) -> None:
    """Print the number of the latest change, for --since.

    Example: extcli wait mark
    """
    from extcli.commands.checks.outcomes import read_mark

    session.output.show_value(read_mark(session), views.DATA)


app = noun_and_command(_ready)
add_conditions(app, _wait_until_met)
command(app)(mark)
