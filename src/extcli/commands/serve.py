"""`extcli serve`: starts the service. `extcli exec`: runs a command with a service of its own, with the same options.

Both import the service when they start it.
"""

from __future__ import annotations

import copy
import inspect
import logging
import os
import re
import sys
from contextlib import ExitStack, suppress
from dataclasses import fields
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emulator.contract.names import CONTROL_TOKEN
from extcli.cli import argument, flag, option
from extcli.cli.options import parameters_of, replace_parameters
from extcli.cli.parsing import SERVE_PANEL, PlainCommand, message_on_one_line
from extcli.cli.serve_options import VARIABLE_PREFIX, ServeOptions
from extcli.config.urls import reachable_url
from extcli.errors import CliError, ExitCode, UsageError
from extcli.output import terminal
from extcli.output.printer import write_stderr
from extcli.output.times import parse_duration

if TYPE_CHECKING:
    from emulator.core.settings import Settings
    from emulator.process.http_server import Tls
    from emulator.process.run import Hooks

_EXPORT_FAILED = 1
"""The exit code if the data could not be exported at the stop."""
_SAME_SETTINGS = (
    "production", "data", "extensions", "registered_only", "strict", "channel_stores", "page_events", "leeway",
    "root_path", "journal",
)  # fmt: skip
"""The options that are settings of the service under the same names."""


class ServeCommand(PlainCommand):
    """Reports usage errors on one line, like every other configuration error of the service."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            typer.echo(f"extcli {ctx.info_name}: {message_on_one_line(error)}", err=True)
            raise typer.Exit(ExitCode.USAGE) from None


def _warn_of_unknown_variables() -> None:
    """Log each variable that looks like an option but is none, for example because of a typo."""
    known = [each.name.rstrip("_").upper() for each in parameters_of(ServeOptions)] + ["CONTROL_TOKEN"]
    for variable in sorted(each for each in os.environ if each.startswith(VARIABLE_PREFIX)):
        name = variable.removeprefix(VARIABLE_PREFIX)
        if name not in known:
            hint = "".join(f"; did you mean {VARIABLE_PREFIX}{match}?" for match in get_close_matches(name, known, 1))
            logging.getLogger("emulator").warning("%s: unknown option%s", variable, hint)


def _warn_of_visible_password(data: str) -> None:
    """Log that a password of Redis stands in the arguments of this process."""
    if re.match(r"(rediss?|valkey)://([^@]*:[^@]+@|.*[?&]password=)", data) and any(data in each for each in sys.argv):
        logging.getLogger("emulator").warning(
            "--data: every user of this machine can read the password in the list of processes; use EXTCLI_SERVE_DATA"
        )


app = typer.Typer(rich_markup_mode=None, add_completion=False)


def serve(**given: Any) -> None:
    """Start the service.

    By default it is a sandbox with its data in memory. The first line on standard output is
    `listening on URL`; logs go to standard error. SIGINT and SIGTERM stop the service cleanly.
    SIGHUP reloads --extensions; without --extensions, or when the terminal closes, SIGHUP stops the
    service. In an environment variable, separate several values of an option with spaces.

    Example: extcli serve --port 0 --data sqlite:///srv/extension.db
    """
    options = ServeOptions(**given)
    from emulator.core.errors import ConfigurationError, EngineError, ExportFailed, PortTaken
    from emulator.process import run as server

    try:
        if options.lifeline is not None:
            from emulator.process.signals import stop_when_closed

            stop_when_closed(options.lifeline)
        settings = _settings(options)
        hooks = _data_hooks(options, settings)
        if options.open_ and options.production:
            raise ConfigurationError("--open: --production has no dashboard")
        with ExitStack() as stack:
            server.run(settings, options.host, options.port, hooks, _listening_callback(options, stack), _tls(options))
    except (ConfigurationError, EngineError, UsageError, ExportFailed) as error:
        holder = _port_holder(error.port) if isinstance(error, PortTaken) else ""
        typer.echo(f"extcli serve: {error}{holder}", err=True)
        raise typer.Exit(_EXPORT_FAILED if isinstance(error, ExportFailed) else ExitCode.USAGE) from None
    except Exception:
        # Logged, unlike a bug in another command: the log leaves out exception messages, which may quote data.
        logging.getLogger("emulator").exception("this is a bug in extcli; please report it with the lines below")
        raise typer.Exit(ExitCode.BUG) from None


replace_parameters(serve, parameters_of(ServeOptions))
app.command("serve", cls=ServeCommand)(serve)


def _settings(options: ServeOptions) -> Settings:
    """Configure the logs, and return the settings of the service. Raises `ConfigurationError`."""
    from emulator.core.environment import AnonymousLimits
    from emulator.core.observability.logs import LogSettings
    from emulator.core.settings import KIB, MIB, Limits, read_settings
    from emulator.storage.opening import open_medium

    is_audited = options.lifeline is None if options.log_audit is None else options.log_audit
    logs = LogSettings(options.log_level, options.log_format, options.log_requests, is_audited)
    logs.configure_logging()
    _warn_of_unknown_variables()
    return read_settings(
        **{name: getattr(options, name) for name in _SAME_SETTINGS},
        check_data=open_medium,  # it opens nothing before it is entered
        control_hosts=tuple(options.control_host or ()),
        control_token=os.environ.get(CONTROL_TOKEN, "").strip(),
        limits=Limits(
            body=options.max_body * KIB,
            user_map=options.max_user_map * MIB,
            codes=options.max_codes * MIB,
            user_list=options.max_user_list * MIB,
            uploads=options.max_uploads,
            frame=options.max_frame * KIB,
            sockets=options.max_sockets,
            topics=options.max_subscriptions,
            ids=options.max_ids,
            caller_rate=options.caller_rate,
            client_rate=options.client_rate,
            request_timeout=options.request_timeout,
        ),
        anonymous={each.name: getattr(options, each.name) for each in fields(AnonymousLimits)},
        proxies=tuple(options.proxy or ()),
        logs=logs,
        traces=options.otel,
        namespace_idle=None if options.namespace_idle is None else _idle_seconds(options.namespace_idle),
    )


def _data_hooks(options: ServeOptions, settings: Settings) -> Hooks:
    """Return the function that prepares the data before the service listens, and the one that saves it at the stop."""
    from emulator.core.errors import ConfigurationError
    from emulator.process.run import Hooks

    if options.seed and options.production:
        raise ConfigurationError("--seed: not allowed with --production")
    seed = _seed_hook(options.seed, trusted=options.trust_seed) if options.seed else None
    if not (options.import_ or options.export_on_exit):
        return Hooks(seed)
    from emulator.process.opening import SnapshotFiles
    from extcli import snapshots

    files = SnapshotFiles(options.import_, options.export_on_exit, snapshots.open_snapshot, snapshots.replace_snapshot)
    files.check(settings)

    async def prepare(service: Any) -> None:
        await files.load(service)
        if seed:
            await seed(service)

    return Hooks(prepare, files.save)


def _tls(options: ServeOptions) -> Tls | None:
    """Return how the service encrypts; `None` if it does not. Raises `UsageError`."""
    if not (options.tls or options.tls_cert or options.tls_key):
        return None
    from emulator.process.http_server import Tls
    from extcli.running import certificates

    if options.tls_cert or options.tls_key:
        return Tls(certificates.tls_context_from_files(options.tls_cert, options.tls_key))
    return Tls(certificates.own_tls_context(options.host), certificates.trust_advice())


def _listening_callback(options: ServeOptions, stack: ExitStack) -> Any:
    """Return what to call when the service listens. A registered name ends with the stack."""
    from extcli.running.registry import register_service

    register = None if options.name is None else stack.enter_context(register_service(options.name))

    def announce(url: str, environment: str, location: str) -> None:
        _warn_of_visible_password(options.data)
        if sys.stderr.isatty() and options.lifeline is None:
            terminal.print_renderable(terminal.banner(reachable_url(url), environment, location), sys.stderr)
        if register:
            register(url, environment, location)
        if options.open_:
            from extcli.commands.open import dashboard_url, open_page

            # In a thread: some browsers run until the user closes them.
            Thread(target=open_page, args=[dashboard_url(url)], daemon=True).start()

    return announce


def _port_holder(port: int) -> str:
    """Return which program has the port, and how to stop it if that is a service with a name; empty if unknown."""
    from extcli.doctor.checks import port_holders
    from extcli.running.registry import named_services

    holder = next((each for each in port_holders(port) or () if each.pid), None)
    if holder is None:
        return ""
    names = []
    with suppress(UsageError):  # other users can write to the folder of the names
        names = [each.name for each in named_services() if each.pid == holder.pid]
    return f"; {holder} uses it" + "".join(f"; `extcli stop {name}` stops that service" for name in names)


def _idle_seconds(text: str) -> int:
    """Parse --namespace-idle to seconds, rounded up: 0 means never. Raises `UsageError`."""
    try:
        return -(-parse_duration(text, bare="s") // 1000)
    except UsageError as error:
        raise UsageError(f"--namespace-idle: {error}") from None


def _seed_hook(seed: Path, *, trusted: bool) -> Any:
    """Return the function that puts the seed into the service at its start. Raises `ConfigurationError`."""
    from emulator.core.errors import BadRequest, ConfigurationError, Conflict
    from extcli.seeds import read

    try:
        content = read(seed, os.environ, trusted=trusted)
    except UsageError as error:
        raise ConfigurationError(": ".join(filter(None, ("--seed", str(error), error.why)))) from None

    async def prepare(service: Any) -> None:
        try:
            seeded = await service.seeds.apply(content.body)
        except BadRequest as error:
            raise ConfigurationError(f"--seed: {content.source.refusal_error(error.details)}") from None
        except Conflict as error:
            raise ConfigurationError(f"--seed: {content.source.name}: {error.detail}") from None
        content.save_tokens([link.refresh for link in seeded.links])

    return prepare


# `extcli exec`

_EXEC_DEFAULTS: dict[str, Any] = {"port": 0, "data": "sqlite://", "name": None}
"""Options of `serve` that no variable sets here: runs would share a port or data without being asked to."""

exec_app = typer.Typer(rich_markup_mode=None, add_completion=False)


def exec_(
    command: list[str] = argument("COMMAND", "The command and its arguments."),
    env: list[str] | None = option(
        "--env NAME=TEXT",
        "Set an environment variable of the command. TEXT may contain {url}, {ws_url}, {host}, {port}, "
        "{client_id} and {namespace}. Repeatable.",
    ),
    client_id: str | None = option("--client-id ID", "The command's client id. Default: the first of --extensions."),
    on_failure: Path | None = option("--on-failure DIR", "On failure, write log, metrics, data and journal to DIR."),
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
        from extcli.running.exec_run import RunSettings, parse_fail_on, parse_variable, run_with_service

        settings = RunSettings(
            command=command,
            templates=dict(map(parse_variable, env or ())),
            client_id=client_id,
            report=on_failure,
            quiet=quiet,
            extensions=options["extensions"],
            fail_on=None if fail_on is None else parse_fail_on(fail_on, production=options["production"]),
        )
        code = run_with_service(settings, partial(_serve_here, options))
    except CliError as error:
        write_stderr([f"extcli exec: {'; '.join(filter(None, (error.what, error.why, error.fix)))}"])
        code = error.exit_code
    raise typer.Exit(code)


def _serve_here(options: dict[str, Any], lifeline: int) -> int:
    """Run the service in this process, and return its exit code."""
    try:
        serve(**options, lifeline=lifeline)
    except typer.Exit as end:
        return int(end.exit_code)
    return ExitCode.DONE


def _exec_option(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return an option of `serve` in its own section of the help, and without a variable if that must not set it."""
    info = copy.copy(parameter.annotation.__metadata__[0])
    info.rich_help_panel = SERVE_PANEL
    default = parameter.default
    if parameter.name in _EXEC_DEFAULTS:
        info.envvar, default = None, _EXEC_DEFAULTS[parameter.name]
    annotated: Any = Annotated
    return parameter.replace(annotation=annotated[parameter.annotation.__origin__, info], default=default)


_exec_parameters = [each for each in parameters_of(exec_) if each.name != "options"]
replace_parameters(
    exec_, [*_exec_parameters, *(_exec_option(each) for each in parameters_of(serve) if each.name != "lifeline")]
)
exec_app.command("exec", cls=ServeCommand, context_settings={"allow_interspersed_args": False})(exec_)
