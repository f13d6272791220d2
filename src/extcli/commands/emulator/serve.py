"""`extcli serve`: starts the service. Imports it when it starts: `extcli exec` has the same options."""

from __future__ import annotations

import logging
import os
import re
import sys
from contextlib import ExitStack, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from extcli.cli.fast_start import garbage_collection_paused
from extcli.cli.options import declare, parameters_of
from extcli.cli.removed import removed_variable
from extcli.cli.serve_options import VARIABLES, Options
from extcli.cli.shared_options import Command
from extcli.cli.usage import what_is_wrong
from extcli.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from emulator.core.config.settings import Settings
    from emulator.process.http_server import Tls
    from emulator.process.run import Hooks

_NOT_EXPORTED = 1
"""The exit code if the data could not be exported at the stop."""
_ANONYMOUS = (
    "address_pins", "address_pin_attempts", "client_pin_attempts", "address_sockets", "max_unauthenticated",
    "login_timeout", "address_connections", "address_pages", "address_kib",
)  # fmt: skip
"""The options that limit callers without a token, under the names of the service's settings."""


class ServeCommand(Command):
    """Reports usage errors on one line, like every other configuration error of the service."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            rest = super().parse_args(ctx, args)
            wrong = removed_variable(VARIABLES, os.environ)
        except typer.TyperException as error:
            wrong = what_is_wrong(error.format_message())
        if wrong:
            typer.echo(f"extcli {ctx.info_name}: {wrong}", err=True)
            raise typer.Exit(ExitCode.USAGE)
        return rest


def _warn_of_unknown_variables() -> None:
    """Log each variable that looks like an option but is none, for example because of a typo."""
    known = [each.name.rstrip("_").upper() for each in parameters_of(Options)] + ["CONTROL_TOKEN"]
    for variable in sorted(each for each in os.environ if each.startswith(VARIABLES)):
        name = variable.removeprefix(VARIABLES)
        if name not in known:
            hint = "".join(f"; did you mean {VARIABLES}{match}?" for match in get_close_matches(name, known, 1))
            logging.getLogger("emulator").warning("%s: unknown option%s", variable, hint)


def _warn_of_visible_password(data: str) -> None:
    """Log that a password of Redis stands in the arguments of this process."""
    if re.match(r"(rediss?|valkey)://([^@]*:[^@]+@|.*[?&]password=)", data) and any(data in each for each in sys.argv):
        logging.getLogger("emulator").warning(
            "--data: every user of this machine can read the password in the list of processes; set EXTCLI_SERVE_DATA"
        )


app = typer.Typer(rich_markup_mode=None, add_completion=False)


def serve(**given: Any) -> None:
    """Start the service.

    By default it is a sandbox with its data in memory. The first line on standard output is
    `listening on URL`; logs go to standard error. SIGINT and SIGTERM stop it cleanly. SIGHUP
    reloads --extensions; without it, or when the terminal closes, it stops the service. If an
    option is set by an environment variable, separate several values with spaces.

    Example: extcli serve --port 0 --data sqlite:///srv/extension.db
    """
    options = Options(**given)
    with garbage_collection_paused():
        from emulator.core.errors import ConfigurationError, EngineError, ExportFailed, PortTaken
        from emulator.process import run as server
    try:
        if options.lifeline is not None:
            from emulator.process.signals import stop_when_closed

            stop_when_closed(options.lifeline)
        settings = _settings(options)
        hooks = _hooks(options, settings)
        if options.open_ and options.production:
            raise ConfigurationError("--open: --production has no dashboard")
        with ExitStack() as stack:
            server.run(settings, options.host, options.port, hooks, _on_listening(options, stack), _tls(options))
    except (ConfigurationError, EngineError, UsageError) as error:
        holder = _holder_of(error.port) if isinstance(error, PortTaken) else ""
        typer.echo(f"extcli serve: {error}{holder}", err=True)
        raise typer.Exit(ExitCode.USAGE) from None
    except ExportFailed as error:
        typer.echo(f"extcli serve: {error}", err=True)
        raise typer.Exit(_NOT_EXPORTED) from None
    except Exception:
        # Logged, unlike a bug in another command: the log leaves out exception messages, which may quote data.
        logging.getLogger("emulator").exception("this is a bug in extcli; please report it with the lines below")
        raise typer.Exit(ExitCode.BUG) from None


declare(serve, parameters_of(Options))
app.command("serve", cls=ServeCommand)(serve)


def _settings(options: Options) -> Settings:
    """Configure the logs, and return the settings of the service. Raises `ConfigurationError`."""
    from emulator.contract.names import CONTROL_TOKEN
    from emulator.core.config.settings import KIB, MIB, Limits, read_settings
    from emulator.core.observability.logs import LogSettings
    from emulator.storage.opening import open_medium

    is_audited = options.lifeline is None if options.log_audit is None else options.log_audit
    logs = LogSettings(options.log_level, options.log_format, options.log_requests, is_audited)
    logs.apply()
    _warn_of_unknown_variables()
    return read_settings(
        production=options.production,
        data=options.data,
        check_data=open_medium,  # it opens nothing before it is entered
        extensions=options.extensions,
        registered_only=options.registered_only,
        strict=options.strict,
        channel_stores=options.channel_stores,
        page_events=options.page_events,
        leeway=options.leeway,
        root_path=options.root_path,
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
        anonymous={name: getattr(options, name) for name in _ANONYMOUS},
        proxies=tuple(options.proxy or ()),
        logs=logs,
        traces=options.otel,
        namespace_idle=None if options.namespace_idle is None else _seconds("--namespace-idle", options.namespace_idle),
        journal=options.journal,
    )


def _hooks(options: Options, settings: Settings) -> Hooks:
    """Return the function that prepares the data before the service listens, and the one that saves it at the stop."""
    from emulator.process.run import Hooks

    prepare, finish = _preparation(options.seed, production=options.production, trusted=options.trust_seed), None
    if options.import_ is not None or options.export_on_exit is not None:
        from emulator.process.snapshot_files import SnapshotFiles
        from extcli.snapshots import content

        files = SnapshotFiles(options.import_, options.export_on_exit, content.opened, content.written)
        files.check(settings)
        prepare, finish = _in_turn(files.load, prepare), files.save
    return Hooks(prepare, finish)


def _tls(options: Options) -> Tls | None:
    """Return how the service encrypts; `None` if it does not. Raises `UsageError`."""
    if not (options.tls or options.tls_cert or options.tls_key):
        return None
    from emulator.process.http_server import Tls
    from extcli.running import certificates

    if options.tls_cert or options.tls_key:
        return Tls(certificates.context_of_files(options.tls_cert, options.tls_key))
    return Tls(certificates.own_context(options.host), certificates.trust_advice())


def _on_listening(options: Options, stack: ExitStack) -> Any:
    """Return what to call when the service listens. A registered name ends with the stack."""
    announced: list[Any] = [lambda *_: _warn_of_visible_password(options.data)]
    if sys.stderr.isatty() and options.lifeline is None:
        announced.append(lambda *details: typer.echo(_banner(*details), err=True))
    if options.name is not None:
        from extcli.running.registry import registered

        announced.append(stack.enter_context(registered(options.name)).announce)
    if options.open_:
        announced.append(_open_dashboard)
    return lambda *details: [each(*details) for each in announced]


_DEFAULT = "http://127.0.0.1:8282"
_GAP = "     "


def _banner(url: str, environment: str, location: str) -> str:
    """Return the lines for a service with this URL, environment, and place of the data."""
    from importlib.metadata import version
    from shutil import get_terminal_size

    from extcli.config.urls import reachable, socket_of
    from extcli.output.sanitize import visible

    url = reachable(url)
    place = f"data in {visible(location)}" + (" (gone after a stop)" if location == "memory" else "")
    rows = [("API", url)]
    if environment == "sandbox":
        demo = "extcli demo" if url == _DEFAULT else f"extcli --url {url} demo"
        dashboard, hint = f"{url}/_emulator/", f"{demo} plays a crowd"
        is_wide = 13 + len(dashboard + _GAP + hint) <= get_terminal_size().columns
        rows += [("Dashboard", dashboard + _GAP + hint)] if is_wide else [("Dashboard", dashboard), ("", hint)]
        rows.append(("Page", f'<script src="{url}/_emulator/sdk.js"></script>'))
    rows.append(("Game", socket_of(url)))
    lines = [f"extcli {version('extcli')} · {environment} · {place}", *(f"{name:<9}  {text}" for name, text in rows)]
    return "\n".join(f"  {line}" for line in (*lines, "Ctrl-C stops"))


def _holder_of(port: int) -> str:
    """Return which program has the port, and how to stop it if that is a service with a name; empty if unknown."""
    from extcli.doctor.machine import listeners
    from extcli.running.registry import running

    holder = next((each for each in listeners(port) or () if each.pid), None)
    if holder is None:
        return ""
    names = []
    with suppress(UsageError):  # other users can write to the folder of the names
        names = [each.name for each in running() if each.pid == holder.pid]
    return f"; {holder} has this one" + "".join(f", and `extcli stop {name}` stops it" for name in names)


def _open_dashboard(url: str, *_: str) -> None:
    """Open the dashboard in a thread: some browsers run until the user closes them."""
    import threading

    from extcli.commands.emulator.open import dashboard_of, open_page

    def opening() -> None:
        if not open_page(dashboard_of(url)):
            logging.getLogger("emulator").warning("--open: no browser was found; open %s yourself", dashboard_of(url))

    threading.Thread(target=opening, daemon=True).start()


def _seconds(flag: str, text: str) -> int:
    """Parse a duration of at least a second, or 0. Raises `ConfigurationError`."""
    from emulator.core.errors import ConfigurationError
    from extcli.errors import UsageError
    from extcli.output.times import duration

    try:
        seconds = duration(text, bare="s") // 1000
    except UsageError as error:
        raise ConfigurationError(f"{flag}: {error}; {error.fix}") from None
    if seconds < 1 and text.strip() != "0":
        raise ConfigurationError(f"{flag}: {text} is too short; give one second or more, or 0 for never")
    return seconds


def _preparation(seed: Path | None, *, production: bool, trusted: bool) -> Any:
    """Return what puts the seed into the service at its start; `None` without one. Raises `ConfigurationError`."""
    if seed is None:
        return None
    from emulator.core.errors import BadRequest, ConfigurationError, Conflict
    from extcli.errors import UsageError
    from extcli.seeds import read

    if production:
        raise ConfigurationError("--seed: --production takes no seed")
    try:
        content = read(seed, os.environ, trusted=trusted)
    except UsageError as error:
        raise ConfigurationError(": ".join(filter(None, ("--seed", str(error), error.why)))) from None

    async def prepare(service: Any) -> None:
        try:
            seeded = await service.seeds.apply(content.body)
            content.save_tokens([link.refresh for link in seeded.links])
        except BadRequest as error:
            raise ConfigurationError(f"--seed: {content.refused(error.details)}") from None
        except Conflict as error:
            raise ConfigurationError(f"--seed: {content.name}: {error.detail}") from None
        except UsageError as error:
            raise ConfigurationError(f"--seed: {error}") from None

    return prepare


def _in_turn(first: Any, second: Any) -> Any:
    async def prepare(service: Any) -> None:
        await first(service)
        if second is not None:
            await second(service)

    return prepare
