"""`extcli exec`: runs a command with a service that starts before it and stops after it."""

from __future__ import annotations

import copy
import inspect
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from extcli.cli import argument, flag, option
from extcli.cli.options import declare, parameters_of
from extcli.cli.shared_options import SERVE_PANEL
from extcli.commands.emulator.serve import ServeCommand, serve
from extcli.errors import CliError, ExitCode
from extcli.output.printer import write_stderr

_HIDDEN = {"lifeline"}
_OWN_DEFAULTS: dict[str, Any] = {"port": 0, "data": "sqlite://", "name": None}
"""Options of `serve` that no variable sets here: runs would share a port or data without being asked to."""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


def exec_(
    command: list[str] = argument("COMMAND", "The command and its arguments."),
    env: list[str] | None = option(
        "--env NAME=TEXT",
        "Set an environment variable of the command. TEXT may contain {url}, {ws_url}, {host}, {port}, "
        "{client_id} and {namespace}. Repeatable.",
    ),
    client_id: str | None = option(
        "--client-id ID", "The client id that the command uses. Default: the first in the --extensions file."
    ),
    on_failure: Path | None = option(
        "--on-failure DIR", "On failure, write the service's log, metrics, data and journal to DIR."
    ),
    fail_on: str | None = option(
        "--fail-on parity[=RULE,…]",
        "Exit 7 if production would have handled a request differently. !RULE ignores a rule. "
        "See `extcli expect parity --help`.",
    ),
    quiet: bool = flag("-q --quiet", "Do not show the service's log."),
    **options: Any,
) -> None:
    """Start a service, run a command, stop the service.

    The service takes a free port and keeps its data in memory. The command starts when the service
    is ready, and finds it through EXTCLI_URL, EXTCLI_WS_URL, EXTCLI_CLIENT_ID and
    EXTCLI_SECRET_FILE. Exits with the command's exit code, or 128+n if signal n ended it. If the
    service dies while the command runs, the command is ended and the exit code is 5. With
    --fail-on, exits 7 if the command succeeds but production would have handled a request
    differently. The options of `serve` are also options of `exec`.

    \b
    Examples:
      extcli exec -- npm test
      extcli exec --quiet --on-failure logs --env API='{url}/v1' -- pytest -q
    """
    try:
        from extcli.running.exec_run import Plan, Template, run
        from extcli.running.failure_report import FailOn, FailureReport

        plan = Plan(
            command=command,
            templates=[Template.parse(each) for each in env or ()],
            client_id=client_id,
            report=FailureReport(on_failure) if on_failure else None,
            quiet=quiet,
            extensions=options["extensions"],
            fail_on=None if fail_on is None else FailOn.parse(fail_on, production=options["production"]),
        )
        code = run(plan, partial(_serve, options))
    except CliError as error:
        write_stderr([f"extcli exec: {'; '.join(filter(None, (error.what, error.why, error.fix)))}"])
        code = error.exit_code
    raise typer.Exit(code)


def _serve(options: dict[str, Any], lifeline: int) -> int:
    """Run the service in this process, and return its exit code."""
    try:
        serve(**options, lifeline=lifeline)
    except typer.Exit as end:
        return int(end.exit_code)
    return ExitCode.DONE


def _option_here(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return an option of `serve` in its own section of the help, and without a variable if that must not set it."""
    info = copy.copy(parameter.annotation.__metadata__[0])
    info.rich_help_panel = SERVE_PANEL
    default = parameter.default
    if parameter.name in _OWN_DEFAULTS:
        info.envvar, default = None, _OWN_DEFAULTS[parameter.name]
    annotated: Any = Annotated
    return parameter.replace(annotation=annotated[parameter.annotation.__origin__, info], default=default)


_own = [each for each in parameters_of(exec_) if each.name != "options"]
declare(exec_, [*_own, *(_option_here(each) for each in parameters_of(serve) if each.name not in _HIDDEN)])
app.command("exec", cls=ServeCommand, context_settings={"allow_interspersed_args": False})(exec_)
