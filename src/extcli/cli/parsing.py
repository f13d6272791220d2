"""Commands of Typer as extcli has them: fast parsing, help with the shared options last, usage errors.

The only file that uses private parts of Typer: `get_runtime_param` and `type_descriptor` of a parameter. Typer passes
every argument to pydantic, whose import takes longer than most commands. Text, whole numbers and choices are parsed
here instead. Anything else, and anything invalid, goes to pydantic, and so does all if a Typer lacks these parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial
from typing import Any, Final, NamedTuple, get_args

from typer.core import TyperCommand

from extcli.errors import UsageError
from extcli.output.terminal import colored_help

SHARED_PANEL = "Options of all commands except serve and exec"
SERVE_PANEL = "Options of serve"
"""Titles in the help. The second has the options that `exec` passes on to the service."""

_UNPARSED = object()
_INTEGER_TEXT = re.compile(r"-?[0-9]{1,18}")
_NEGATIVE_ARGUMENT = re.compile(r"-\d")


class PlainCommand(TyperCommand):
    """A command without the shared options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        parameters = self.get_params(ctx)
        use_fast_parser(parameters)
        if ctx.allow_interspersed_args:
            args = _move_negative_arguments(args, parameters)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return ["[OPTIONS]", *(value_name(each) if each.required else f"[{value_name(each)}]" for each in arguments)]

    def get_help(self, ctx: Any) -> str:
        return colored_help(super().get_help(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_parameter_help(self, ctx, formatter)


def value_name(parameter: Any) -> str:
    """Return the name of an argument's or option's value in help, in place of the Python type that Typer would show."""
    return f"{parameter.metavar}..." if parameter.nargs == -1 else str(parameter.metavar)


def write_parameter_help(command: Any, ctx: Any, formatter: Any, *, shared: bool = True) -> None:
    """Write the arguments and options of a command into its help, the `shared` ones last or not at all."""
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], SHARED_PANEL: [], SERVE_PANEL: []}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue  # it is hidden
        names, text = record
        text = re.sub(r"(\d+)<=x<=(\d+)", r"\1 to \2", re.sub(r"x>=(\d+)", r"at least \1", text))
        if parameter.param_type_name == "argument":
            sections["Arguments"].append((value_name(parameter), text.removesuffix("  [required]")))
        else:
            sections[parameter.rich_help_panel or "Options"].append((names, text))
    for title, records in sections.items():
        if records and (shared or title != SHARED_PANEL):
            with formatter.section(title):
                formatter.write_dl(records)


def _move_negative_arguments(args: list[str], parameters: Iterable[Any]) -> list[str]:
    """Move arguments below zero, such as -1h, behind `--`. No option has a digit."""
    options = [each for each in parameters if each.param_type_name == "option" and not each.is_flag]
    takes_value = {name for each in options for name in each.opts}
    end = args.index("--") if "--" in args else len(args)
    rest, negative = list[str](), list[str]()
    last = ""
    for word in args[:end]:
        is_negative = _NEGATIVE_ARGUMENT.match(word) and last not in takes_value
        (negative if is_negative else rest).append(word)
        last = word
    return [*rest, "--", *negative, *args[end + 1 :]] if negative else args


def use_fast_parser(parameters: Iterable[Any]) -> None:
    """Give parameters of a Typer command the fast parser, once. It passes values that it does not know to Typer's."""
    for parameter in parameters:
        original = getattr(parameter, "get_runtime_param", None)
        if original and not isinstance(original, partial) and getattr(parameter, "type_descriptor", None):
            parameter.get_runtime_param = partial(_FastParser, original)


class _FastParser(NamedTuple):
    """Replaces the pydantic parser of one parameter."""

    original: Callable[[], Any]

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value that Typer itself would return."""
        is_many, found = param.multiple or param.nargs == -1, param.type_descriptor
        if value is None:
            return () if is_many else None
        kind = get_args(found.annotation)[0] if is_many else found.annotation
        parsed = [_parse_value(each, kind, found.parameter_info) for each in (value if is_many else [value])]
        if _UNPARSED not in parsed:
            return parsed if is_many else parsed[0]
        return self.original().coerce(value, param=param, ctx=ctx)


def _parse_value(value: Any, kind: Any, limits: Any) -> Any:
    if kind is int and isinstance(value, str) and _INTEGER_TEXT.fullmatch(value):
        value = int(value)
    if kind is int and type(value) is int:
        is_within = (limits.min is None or value >= limits.min) and (limits.max is None or value <= limits.max)
        return value if is_within else _UNPARSED
    if kind in (str, bool) and type(value) is kind:
        return value
    if isinstance(kind, type) and issubclass(kind, StrEnum) and value in list(kind):
        return kind(value)
    return _UNPARSED


# Usage errors: what is wrong, then where to read the usage; for what was removed, what to use instead

REMOVED: Final = {
    "broadcast as-page": "use `extcli broadcast send`, or the endpoint for pages: `extcli api POST pusher_broadcast`",
    "codes check": "use `extcli codes upload --dry-run`",
    "exec --workers": "start several `extcli serve` on one Redis; see docs/scaling.md",
    "pin check": "use `extcli pin status`; with the token of a game, `extcli user info` shows whether it is valid",
    "pin revoke": "use `extcli link end`, or without a stored link `extcli api DELETE pin`",
    "policies": "use `extcli explain --rulings` or `extcli explain RULE`; `extcli conform` tests a service",
    "serve --no-upgrade": "leave it out; `serve` never changes data of another format",
    "serve --workers": "start several `extcli serve` on one Redis; see docs/scaling.md",
    "vote define --show": "use `extcli vote config`",
    "wait ready": "use `extcli wait`",
}
"""What to use instead of a removed command, or of its removed option."""


def removal_error(path: str, name: str) -> str:
    """Return the error for an option or verb that was removed from the command at `path`, such as `extcli codes`.

    Empty for any other.
    """
    instead = REMOVED.get(f"{path.removeprefix('extcli')} {name}".strip())
    return f"{name} no longer exists: {instead}" if instead else ""


def is_noun_without_verb(error: Any) -> bool:
    """Return whether an exception is for a noun without a verb: Typer puts the help of the noun into it."""
    return str(error.message).startswith("Usage: ")


def usage_error(error: Any) -> UsageError:
    """Return the error of extcli for an exception of Typer about the arguments."""
    what = "missing command" if is_noun_without_verb(error) else message_on_one_line(error)
    context = getattr(error, "ctx", None)
    return UsageError(what, fix=f"`{context.command_path} -h` shows the usage" if context else "")


def message_on_one_line(error: Any) -> str:
    """Return Typer's message about the arguments, without line breaks, or what replaces a removed option."""
    context = getattr(error, "ctx", None)
    removed = removal_error(context.command_path, getattr(error, "option_name", "")) if context else ""
    return removed or " ".join(error.format_message().replace("Value error, ", "").split())
