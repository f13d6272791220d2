"""The options that every command shares. They may stand before or after the command; help lists them last."""

from __future__ import annotations

import inspect
import signal
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from extcli import clock
from extcli.cli.options import Function, as_annotated, flag, option, parameters_of, replace_parameters
from extcli.cli.parsing import SHARED_PANEL, PlainCommand, removal_error, use_fast_parser, write_parameter_help
from extcli.config.flags import Flags
from extcli.errors import CliError, RequestWithheld, UsageError
from extcli.output.format import Format, discard_rest
from extcli.output.terminal import colored_help

if TYPE_CHECKING:
    from extcli.output.printer import View
    from extcli.session import Session

Watch = Annotated[bool, flag("--watch", "Show each change, until --timeout. A pipe gets JSON, unless -o is given.")]
_VERB_ALIASES = {"ls": "list", "delete": "rm", "remove": "rm", "show": "get"}
"""Verbs of other programs, and what they are called here. They are understood, but in no list."""
_READ_INTERVAL = 0.5
"""Between two reads. A service may refuse a caller who reads more often."""


def show_live(session: Session, show: Callable[[], None], *, watch: bool) -> None:
    """Show a result once, or with --watch again after each change."""
    if not watch:
        show()
        return
    if session.output.format is Format.ENV:
        raise UsageError("--watch does not work with -o env", fix="choose another format")
    from extcli.config.settings import OUTPUT

    seconds = session.resolver.timeout() if session.resolver.flags.timeout else float("inf")
    deadline = clock.elapsed() + seconds
    with session.output.watching(is_chosen=session.resolver.find(OUTPUT) is not None):
        show()
        while clock.elapsed() < deadline:
            clock.sleep(_READ_INTERVAL)
            show()


_option = partial(option, rich_help_panel=SHARED_PANEL, show_default=False)
_flag = partial(flag, rich_help_panel=SHARED_PANEL, show_default=False)


def _shared_options(
    profile: str | None = _option("-p --profile NAME", "Use this profile [EXTCLI_PROFILE; the default profile]."),
    url: str | None = _option("--url URL", "The service's address [EXTCLI_URL; http://127.0.0.1:8282]."),
    client_id: str | None = _option("--client-id ID", "The extension's client id [EXTCLI_CLIENT_ID; my-extension]."),
    acts_as: str | None = _option("--as ROLE[:USER]", "Act as a role: viewer:U1 [EXTCLI_AS; depends on the command]."),
    channel: str | None = _option("--channel ID", "The channel [EXTCLI_CHANNEL; 1001, or all for backend and admin]."),
    token_file: Annotated[Path | None, _option("--token-file FILE", "The file with the token [EXTCLI_TOKEN].")] = None,
    output: str | None = _option(
        "-o --output FORMAT",
        "table, plain (tab-separated), json, jsonl or csv [EXTCLI_OUTPUT; table on a terminal, else plain].",
    ),
    timeout: str | None = _option("--timeout TIME", "Wait at most this long, such as 5s or 2m [EXTCLI_TIMEOUT; 30s]."),
    quiet: bool = _flag("-q --quiet", "Print only errors on standard error."),
    verbose: bool = _flag("-v --verbose", "Show requests and responses, without secrets."),
    dry_run: str | None = _option("--dry-run [=curl]", "Print writes, do not send them; =curl: as curl commands."),
    query: str | None = _option("--query JMESPATH", "Print this part of the JSON response, such as stats.count."),
) -> None:
    """Declares the shared options."""


_declaring_app = typer.Typer(add_completion=False)
_declaring_app.command()(replace_parameters(_shared_options, parameters_of(_shared_options)))
_SHARED_PARAMETERS = [each for each in get_command(_declaring_app).params if each.name in Flags._fields]


class Command(PlainCommand):
    """A command that takes the shared options. Its help lists them last."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.params += _SHARED_PARAMETERS

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return _move_shared_options(ctx, super().parse_args(ctx, args))


class Group(TyperGroup):
    """A noun, whose shared options apply to its verbs. Its help lists the verbs, and theirs has the shared options."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.params += _SHARED_PARAMETERS

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        use_fast_parser(self.get_params(ctx))
        return _move_shared_options(ctx, super().parse_args(ctx, args))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if removed := removal_error(ctx.command_path, cmd_name):
            raise UsageError(removed)
        return self.commands.get(cmd_name) or self.commands.get(_VERB_ALIASES.get(cmd_name, ""))

    def get_help(self, ctx: Any) -> str:
        return colored_help(super().get_help(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        write_parameter_help(self, ctx, formatter, shared=ctx.parent is None or self.invoke_without_command)


def _move_shared_options(ctx: Any, rest: list[str]) -> list[str]:
    """Move the shared options from the parameters of a command to its context, merged with those given before it."""
    flags = Flags(**{name: ctx.params.pop(name) for name in Flags._fields})
    ctx.obj = flags.over(ctx.obj) if ctx.obj else flags
    return rest


def noun(summary: str) -> typer.Typer:
    """Return a group of verbs. It also takes the shared options: `extcli vote --url … get`."""
    app = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode=None, add_completion=False)
    app.callback(help=summary)(lambda: None)
    return app


def noun_and_command(function: Function, *, prints: View | None = None) -> typer.Typer:
    """Return a group of verbs that without a verb runs `function`, whose docstring is its help."""
    app = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=False)
    alone = shared(function, prints=prints)

    def run(context: typer.Context, **values: Any) -> None:
        if context.invoked_subcommand is None:
            alone(context=context, **values)

    replace_parameters(run, parameters_of(alone))
    app.callback(invoke_without_command=True, help=alone.__doc__)(run)
    return app


def command(app: typer.Typer, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
    """Add a function as a verb. `settings` are parameters of `shared`."""

    def add(function: Function) -> Function:
        return app.command(name, cls=Command)(shared(function, **settings))

    return add


def shared(
    function: Function,
    *,
    use_profile: bool = True,
    has_env: bool = False,
    prints: View | None = None,
    loses: str = "",
    is_control: bool = False,
) -> Function:
    """Make a command of a function. Its first parameter is the `Session`; the others are its own options.

    If it always `loses` data, it has --yes, and without it asks for confirmation in production; `{poll}` in the text
    stands for that argument. `is_control` says that it calls the control API. Commands that edit the profiles file do
    not `use_profile`, so that they work even if the file is invalid. In the help, `$columns` stands for the columns of
    what the command `prints`. Only a few commands have the format `env`.
    """
    # `extcli --help` needs none of these.
    from extcli.cli import confirm
    from extcli.output.printer import print_error
    from extcli.session import Session

    @wraps(function)
    def run(context: typer.Context, **values: Any) -> None:
        flags: Flags = context.obj
        session = Session(flags)
        _interrupt_at_sigterm()
        try:
            session.resolver.choose_profile() if use_profile else session.resolver.ignore_profiles()
            if flags.query is not None:
                from extcli.output.views import compile_query

                session.output.query = compile_query(flags.query)
            if flags.dry_run and not use_profile:
                raise UsageError("--dry-run prints requests, and this command sends none", fix="leave out --dry-run")
            if session.output.format is Format.ENV and not has_env:
                raise UsageError("this command does not support -o env", fix="`status` and `connect env` support it")
            if loses:
                yes = values.pop("yes")
                confirm.ask_in_production(session, loses.format_map(values), yes=yes, is_control=is_control)
            function(session, **values)
        except CliError as error:
            print_error(error, as_json=session.wants_json)
            raise typer.Exit(error.exit_code) from None
        except RequestWithheld:
            session.output.note("nothing was changed")
        except BrokenPipeError:
            # The reader of our output (`| head`) is done. That is not a failure; Typer would make it one.
            discard_rest(sys.stdout)
        finally:
            session.close()

    if prints:
        run.__doc__ = prints.described(run.__doc__)
    parameters = parameters_of(function)
    parameters[0] = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    if loses:
        yes = inspect.Parameter("yes", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=confirm.Yes)
        parameters.append(as_annotated(yes))
    return replace_parameters(run, parameters)


def _interrupt_at_sigterm() -> None:
    """Let SIGTERM end the command as Ctrl-C does, so that it reports how far it came and removes what it must."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        found = signal.getsignal(signal.SIGINT)  # an event loop has its own; a shell's `&` ignores SIGINT
        (found if callable(found) else signal.default_int_handler)(number, frame)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and current_thread() is main_thread():
        signal.signal(signal.SIGTERM, interrupt)
