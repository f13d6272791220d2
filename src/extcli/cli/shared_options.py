"""The options that every command shares. They may stand before or after the command; help lists them last."""

from __future__ import annotations

import inspect
import re
import signal
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from extcli import clock
from extcli.cli.fast_start import choices_of, parse_fast
from extcli.cli.options import F, declare, flag, option, parameters_of
from extcli.cli.removed import removal
from extcli.config.flags import Flags
from extcli.errors import CliError, UsageError, Withheld
from extcli.output.format import Format, silence

if TYPE_CHECKING:
    from extcli.output.printer import View
    from extcli.session import Session

Watch = Annotated[
    bool,
    flag(
        "--watch",
        "Keep running, and show each change. Ends at --timeout, if given. In a pipe, prints JSON, unless -o is given.",
    ),
]
_SECONDS = 0.5
"""Between two reads. A service may refuse a caller who reads more often."""


def repeat(session: Session, show: Callable[[], None], *, watch: bool) -> None:
    """Show a result once, or with --watch again after each change."""
    if not watch:
        show()
        return
    if session.output.format is Format.ENV:
        raise UsageError("-o env cannot be watched", fix="leave out --watch")
    from extcli.config.settings import OUTPUT
    from extcli.output.progress import watching

    seconds = session.resolver.timeout() if session.resolver.flags.timeout else float("inf")
    deadline = clock.elapsed() + seconds
    with watching(session.output, is_chosen=session.resolver.find(OUTPUT) is not None):
        show()
        while clock.elapsed() < deadline:
            clock.sleep(_SECONDS)
            show()


_SHARED = "shared"
SERVE_PANEL = "serve"
"""Marks options that a command passes on to the service; help lists them last."""


_option = partial(option, rich_help_panel=_SHARED, show_default=False)
_flag = partial(flag, rich_help_panel=_SHARED, show_default=False)


def shared_flags(
    profile: str | None = _option("-p --profile NAME", "Use this profile [EXTCLI_PROFILE; the file's default]."),
    url: str | None = _option("--url URL", "The service's address [EXTCLI_URL; http://127.0.0.1:8282]."),
    client_id: str | None = _option("--client-id ID", "The extension's client id [EXTCLI_CLIENT_ID; my-extension]."),
    acts_as: str | None = _option(
        "--as ROLE[:USER]", "Act as this role, such as viewer:U1 [EXTCLI_AS; depends on the command]."
    ),
    channel: str | None = _option("--channel ID", "The channel [EXTCLI_CHANNEL; 1001; all for backend and admin]."),
    token_file: Annotated[
        Path | None, _option("--token-file FILE", "Use the token in this file [EXTCLI_TOKEN].")
    ] = None,
    output: str | None = _option(
        "-o --output FORMAT",
        "table, plain (tab-separated), json, jsonl or csv [EXTCLI_OUTPUT; table on a terminal, or plain].",
    ),
    timeout: str | None = _option("--timeout TIME", "Wait at most this long, such as 5s or 2m [EXTCLI_TIMEOUT; 30s]."),
    quiet: bool = _flag("-q --quiet", "Print only errors on standard error."),
    verbose: bool = _flag("-v --verbose", "Show requests and responses, without secrets."),
    dry_run: str | None = _option(
        "--dry-run [=curl]",
        "Print the request instead of sending it if it would change something; =curl prints a curl command.",
    ),
    query: str | None = _option("--query JMESPATH", "Print this part of the JSON response, such as stats.count."),
) -> Flags:
    """Declares the shared options; `shared` adds them to every command."""
    return Flags(profile, url, client_id, acts_as, channel, token_file, output, timeout, quiet, verbose, dry_run, query)


_PARAMETERS = parameters_of(shared_flags)


_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((.+)\)")
_NO_COMMAND = re.compile(r"No such command [^?]*\.")
"""An error of Typer that suggests no command."""
_NEGATIVE = ("--key",)
"""Options whose value may be below zero."""
_UNNAMED = ("--value", *_NEGATIVE, "--match")
"""Options whose value is often typed without their name."""
_ALIASES = {"ls": "list", "delete": "rm", "remove": "rm", "show": "get"}
"""Verbs of other programs, and what they are called here. They are understood, but in no list."""
_OF_OTHER_PROGRAMS = {"-n": "--limit", "--tail": "--limit"}
"""Options of `tail` and its like, and what they are called here."""


class Command(TyperCommand):
    """A command whose help lists its own options first."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        parse_fast(self.get_params(ctx))
        args = with_forms(args)
        typed = list(args)
        options = {name: each for each in self.get_params(ctx) for name in each.opts}
        if ctx.allow_interspersed_args and not options.keys() & set(_NEGATIVE):
            args = _with_negative_arguments(args, options)
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            _suggest(error, ctx.command_path, typed, options)
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return ["[OPTIONS]", *(shown_name(each) if each.required else f"[{shown_name(each)}]" for each in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self, ctx, formatter)


def _with_negative_arguments(args: list[str], options: Mapping[str, Any]) -> list[str]:
    """Move the arguments behind `--` if one is below zero, such as -1h. No option has a digit."""
    end = args.index("--") if "--" in args else len(args)
    named, arguments = list[str](), list[str]()
    words = iter(args[:end])
    for word in words:
        if word[:1] != "-" or word == "-" or word[1:2].isdigit():
            arguments.append(word)
            continue
        named.append(word)
        # Of `-qo json`, only the last letter may take the next word.
        last = word if word[:2] == "--" else f"-{word[-1]}"
        if last in options and not options[last].is_flag and (word[:2] == "--" or _are_flags(word[1:-1], options)):
            named += [each for _, each in zip("1", words, strict=False)]
    is_needed = any(word[:1] == "-" and word != "-" for word in arguments)
    return [*named, "--", *arguments, *args[end + 1 :]] if is_needed else args


def _are_flags(letters: str, options: Mapping[str, Any]) -> bool:
    return all(f"-{each}" in options and options[f"-{each}"].is_flag for each in letters)


def _suggest(error: Any, path: str, typed: Sequence[str], options: Container[str]) -> None:
    """Add a suggestion to an error about a value whose option name is missing, about a value that looks like an option,
    or about an option of another program or an earlier version.
    """
    number, option = getattr(error, "option_name", ""), next((name for name in _UNNAMED if name in options), None)
    if removed := removal(path, number):
        error.message, error.possibilities = removed, []
    elif (known := _OF_OTHER_PROGRAMS.get(number)) and known in options:
        error.possibilities = [known]
    elif number[1:2].isdigit():
        meant = next((arg for arg in typed if arg.startswith(number)), number)
        error.possibilities = [f"{option} {meant}"] if option else []
    elif option and (extra := _EXTRA.fullmatch(error.message)) and extra[1] in typed:
        from emulator.contract.shell import quoted

        error.message += f". Did you mean {option} {quoted(extra[1])}?"


class Group(TyperGroup):
    """A noun. Its help lists the verbs; the shared options are in the help of each verb."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        parse_fast(self.get_params(ctx))
        typed = with_forms(args)
        try:
            return super().parse_args(ctx, list(typed))
        except typer.TyperException as error:
            _suggest(error, ctx.command_path, typed, {name for each in self.get_params(ctx) for name in each.opts})
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.commands and _ALIASES.get(args[0]) in self.commands:
            args = [_ALIASES[args[0]], *args[1:]]
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            if removed := removal(ctx.command_path, args[0]):
                error.message = removed
            elif ctx.parent is not None and _NO_COMMAND.fullmatch(error.message):
                error.message += f" Commands: {', '.join(self.commands)}"
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        _write_parameters(self, ctx, formatter, shared=ctx.parent is None or self.invoke_without_command)


def _write_parameters(command: Any, ctx: Any, formatter: Any, *, shared: bool = True) -> None:
    sections: dict[str, list[tuple[str, str]]] = {
        "Arguments": [],
        "Options": [],
        "Options of every command but serve and exec": [],
        "Options of serve": [],
    }
    for parameter in command.get_params(ctx):
        if parameter.param_type_name == "option" and not parameter.is_flag:
            parameter.metavar = shown_name(parameter)
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            text = with_choices(parameter, record[1].removesuffix("  [required]"))
            sections["Arguments"].append((shown_name(parameter), text))
        elif getattr(parameter, "rich_help_panel", None) == _SHARED:
            sections["Options of every command but serve and exec"] += [record] if shared else []
        elif getattr(parameter, "rich_help_panel", None) == SERVE_PANEL:
            sections["Options of serve"].append(record)
        else:
            sections["Options"].append(record)
    for title, records in sections.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def shown_name(parameter: Any) -> str:
    """Return the name of an argument's or option's value in help, in place of the Python type that Typer would show."""
    name = parameter.metavar or "|".join(choices_of(parameter)) or parameter.name.upper()
    return f"{name}..." if parameter.nargs == -1 else str(name)


def with_choices(parameter: Any, text: str) -> str:
    """Add the allowed values of an argument to its help text, unless its name already lists them."""
    choices = choices_of(parameter)
    listed = parameter.metavar in (None, "|".join(choices))
    return text if listed or not choices else f"{text} One of {', '.join(choices)}."


def with_forms(args: list[str]) -> list[str]:
    """Replace `--dry-run` with its form with a value, because Typer has no options with optional values."""
    end = args.index("--") if "--" in args else len(args)
    return [f"{each}=request" if each == "--dry-run" and at < end else each for at, each in enumerate(args)]


def noun(summary: str, cls: type[Group] = Group) -> typer.Typer:
    """Return a group of verbs. It also takes the shared options: `extcli vote --url … get`."""
    app = typer.Typer(cls=cls, help=summary, no_args_is_help=True, rich_markup_mode=None, add_completion=False)
    app.callback(help=summary)(remembers_shared_options(_no_options))
    return app


def _no_options() -> None: ...


def noun_and_command(function: Callable[..., None], *, prints: View | None = None) -> typer.Typer:
    """Return a group of verbs that without a verb runs `function`, whose docstring is its help."""
    app = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=False)
    alone = shared(function, prints=prints)

    def run(context: typer.Context, **values: Any) -> None:
        if context.invoked_subcommand is None:
            alone(context=context, **values)
        else:
            context.obj = _merge_flags(context, values)

    declare(run, parameters_of(alone))
    app.callback(invoke_without_command=True, help=alone.__doc__)(run)
    return app


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    use_profile: bool = True,
    loses: str = "",
    is_control: bool = False,
    prints: View | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function as a verb. Its first parameter is the `Session`; the others are its own options.

    If it always `loses` data, it asks for confirmation in production (`guarded`). `is_control` says that it calls the
    control API. Commands that edit the profiles file do not `use_profile`, so that they work even if the file is
    invalid. In the help, `$columns` stands for the columns of what the verb `prints`.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        if loses:
            from extcli.cli.confirm import with_confirmation

            function = with_confirmation(loses, is_control=is_control)(function)
        return app.command(name, cls=Command)(shared(function, use_profile=use_profile, prints=prints))

    return add


def shared(
    function: Callable[..., None], *, use_profile: bool = True, has_env: bool = False, prints: View | None = None
) -> Callable[..., None]:
    """Give a function the shared options, and turn `CliError` into an exit code. `-o env` is only for some commands."""
    # `extcli --help` needs none of these.
    from extcli.output.printer import print_error
    from extcli.session import Session

    @wraps(function)
    def run(context: typer.Context, **values: Any) -> None:
        session = Session(_merge_flags(context, values))
        _interrupt_at_sigterm()
        try:
            session.resolver.choose_profile() if use_profile else session.resolver.ignore_profiles()
            if session.resolver.flags.query is not None:
                from extcli.output.query import query

                session.output.query = query(session.resolver.flags.query)
            if session.resolver.flags.dry_run and not use_profile:
                raise UsageError("--dry-run prints requests, and this command sends none", fix="leave it out")
            if session.output.format is Format.ENV and not has_env:
                raise UsageError("this command has no output format env", fix="`status` and `connect env` have it")
            function(session, **values)
        except CliError as error:
            print_error(error, as_json=session.wants_json)
            raise typer.Exit(error.exit_code) from None
        except Withheld:
            session.output.note("nothing was changed")
        except BrokenPipeError:
            # The reader of our output (`| head`) is done. That is not a failure; Typer would make it one.
            silence(sys.stdout)
        finally:
            session.close()

    if prints:
        run.__doc__ = prints.described(run.__doc__)
    return _with_shared(run, parameters_of(function)[1:])


def _interrupt_at_sigterm() -> None:
    """Let SIGTERM end the command as Ctrl-C does, so that it reports how far it came and removes what it must."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        found = signal.getsignal(signal.SIGINT)  # an event loop has its own; a shell's `&` ignores SIGINT
        (found if callable(found) else signal.default_int_handler)(number, frame)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and current_thread() is main_thread():
        signal.signal(signal.SIGTERM, interrupt)


def remembers_shared_options(function: Callable[..., None]) -> Callable[..., None]:
    """Make a group callback: shared options given to the group apply to its commands."""

    @wraps(function)
    def run(context: typer.Context, **values: Any) -> None:
        context.obj = _merge_flags(context, values)
        function(**values)

    return _with_shared(run, parameters_of(function))


def _merge_flags(context: typer.Context, values: dict[str, Any]) -> Flags:
    """Remove the shared options from `values`, and return them merged with earlier ones."""
    flags = shared_flags(**{each.name: values.pop(each.name) for each in _PARAMETERS})
    return flags.over(context.obj) if isinstance(context.obj, Flags) else flags


def _with_shared(function: F, own: Iterable[inspect.Parameter]) -> F:
    """Declare the context of the command, its own options, and the shared ones."""
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    return declare(function, [context, *own, *_PARAMETERS])
