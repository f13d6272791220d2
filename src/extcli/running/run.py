"""One run: a service, and a command beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from extcli.config.urls import reachable
from extcli.errors import CliError, ExitCode, UsageError
from extcli.output.printer import write_stderr
from extcli.running.failure_report import FailureReport, Log
from extcli.running.place import Place, Template, environment_of, registered
from extcli.running.supervisor import Supervisor

if TYPE_CHECKING:
    from extcli.running.failure_report import FailOn


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run, and how."""

    command: Sequence[str]
    templates: Sequence[Template]
    client_id: str | None
    report: FailureReport | None
    quiet: bool
    extensions: Path | None
    fail_on: FailOn | None = None

    @classmethod
    def of(
        cls,
        command: Sequence[str],
        env: Sequence[str],
        client_id: str | None,
        on_failure: Path | None,
        quiet: bool,
        extensions: Path | None,
        fail_on: FailOn | None = None,
    ) -> Plan:
        """Check the arguments. Raises `UsageError`."""
        if on_failure is not None and on_failure.exists() and not on_failure.is_dir():
            raise UsageError(f"--on-failure {on_failure} is not a directory")
        report = FailureReport(on_failure) if on_failure else None
        return cls(command, [Template.parse(each) for each in env], client_id, report, quiet, extensions, fail_on)


def run(plan: Plan, serve: Callable[[int], int]) -> int:
    """Run the service and the command, and return the exit code. Raises `UsageError`.

    The exit code is the command's (128+n after a signal), or 5 if the service dies first. If the command succeeds, it
    is the code of the `--fail-on` check, then the service's.
    `serve` runs the service in the process that calls it, with the descriptor of a lifeline.
    """
    place = Place()
    log = Log(place.directory, shown=not plan.quiet)
    supervisor = Supervisor(log, _note)
    supervisor.start_service(serve, place.remove)
    try:
        if not (url := supervisor.wait_until_ready()):
            return _end_without_command(plan, supervisor, log)
        url = reachable(url)
        code = _run_command(plan, supervisor, place, url)
        if supervisor.has_lost_service and not supervisor.signaled:
            code = ExitCode.SERVICE_FAILED
        if not code and plan.fail_on:
            code = _check(plan.fail_on, url)
        if code and plan.report:
            _try_report(plan.report.fetch, url)
        served = supervisor.stop_service()
        if served and not supervisor.has_lost_service:
            _note(f"the service ended with exit code {served}")
        code = code or served
        if code and plan.report and _try_report(plan.report.write_log, log):
            _note(f"the report of this run is in {plan.report.directory}")
        return code
    finally:
        place.remove()


def _run_command(plan: Plan, supervisor: Supervisor, place: Place, url: str) -> int:
    try:
        client_id, secret = registered(plan.extensions, plan.client_id)
        place.write_secret(secret)
        environment = environment_of(os.environ, url, place, client_id, plan.templates)
        return supervisor.run_command(plan.command, environment)
    except CliError as error:
        _note(error.what)
        return error.exit_code


def _check(fail_on: FailOn, url: str) -> int:
    try:
        return fail_on.check(url)
    except CliError as error:
        _note(error.what)
        return error.exit_code


def _end_without_command(plan: Plan, supervisor: Supervisor, log: Log) -> int:
    """End a run whose service is not ready, and return the exit code."""
    code = supervisor.stop_service()
    if supervisor.signaled:
        return 128 + supervisor.signaled
    log.show()
    if plan.report:
        _try_report(plan.report.write_log, log)
    return code or ExitCode.BUG


def _try_report(write: Callable[..., None], *args: object) -> bool:
    """Return whether a part of the report was written. One that cannot be written does not change the exit code."""
    try:
        write(*args)
    except OSError as error:
        _note(f"cannot write the report: {error}")
        return False
    return True


def _note(text: str) -> None:
    write_stderr([f"extcli exec: {text}"])
