"""Options and arguments of commands, as Typer reads them. Each stands in the place of a parameter's default, or in
`Annotated` if several commands have it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any, TypeVar, get_args

import typer
from typer.models import ArgumentInfo, ParameterInfo

Function = Callable[..., Any]
"""A command, or what declares a group of options."""
F = TypeVar("F", bound=Function)


def option(names: str, help: str, default: Any = None, **settings: Any) -> Any:
    """Declare an option with a value. Its `names` end with the word for the value in the help: `-f --field KEY=VALUE`.

    Without that word, the help lists the choices. In `Annotated`, the parameter has the default, and without one the
    option must be given. `settings` are further fields of Typer's option.
    """
    words = names.split()
    value = None if words[-1].startswith("-") else words.pop()
    return typer.Option(default, *words, metavar=value, help=help, **settings)


def flag(names: str, help: str, default: bool | None = False, **settings: Any) -> Any:
    """Declare an option without a value. `names` may have both forms: `--disabled/--enabled`."""
    return typer.Option(default, *names.split(), help=help, **settings)


def argument(metavar: str, help: str, default: Any = ..., **settings: Any) -> Any:
    """Declare an argument. Without a `default` it must be given."""
    return typer.Argument(default, metavar=metavar, help=help, **settings)


def parameters_of(function: Any, types: Mapping[str, Any] | None = None) -> list[inspect.Parameter]:
    """Return the parameters of a function, each option or argument in `Annotated` and with its default.

    `types` resolves names in annotations that its module does not import.
    """
    found = inspect.signature(function, eval_str=True, locals=types).parameters.values()
    return [as_annotated(each) for each in found]


def as_annotated(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter as Typer reads it: the declaration in `Annotated`, without a default in it.

    Where it has no name for the value, the help lists the choices there, and those of an argument in its text.
    """
    kind, default = parameter.annotation, parameter.default
    if isinstance(default, ParameterInfo):
        info = default
        default = inspect.Parameter.empty if info.default is ... else info.default
    elif hasattr(kind, "__metadata__"):
        info = kind.__metadata__[0]
        kind = kind.__origin__
    else:
        return parameter
    declared = copy(info)
    declared.default = ...
    choices = _choices(kind)
    declared.metavar = info.metavar or "|".join(choices) or parameter.name.upper()
    if choices and isinstance(info, ArgumentInfo) and "|" not in declared.metavar:
        listed = f" One of {', '.join(choices)}."
        declared.help = str(info.help).removesuffix(listed) + listed
    annotated: Any = Annotated
    return parameter.replace(annotation=annotated[kind, declared], default=default)


def _choices(kind: Any) -> list[str]:
    """Return the values of an enumeration, which may be optional; none of any other type."""
    for each in get_args(kind) or (kind,):
        if isinstance(each, type) and issubclass(each, StrEnum):
            return list(each)
    return []


def replace_parameters(function: F, parameters: Iterable[inspect.Parameter]) -> F:
    """Make Typer read these parameters instead of the function's own."""
    declared: Any = function
    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    declared.__signature__ = inspect.Signature(named)
    declared.__annotations__ = {each.name: each.annotation for each in named}
    vars(declared).pop("__wrapped__", None)
    return function


def with_options(name: str, group: Function) -> Callable[[Function], Function]:
    """Give a command the options that `group` declares, in place of its parameter `name`.

    That parameter receives what `group` returns. Both take the `Session` first.
    """
    # The group's return types may be imported for type checking only.
    types = {inspect.signature(group).return_annotation: Any}
    _, *options = parameters_of(group, types)

    def decorate(function: Function) -> Function:
        @wraps(function)
        def run(session: Any, **values: Any) -> Any:
            given = {each.name: values.pop(each.name) for each in options}
            return function(session, **values, **{name: group(session, **given)})

        parameters = parameters_of(function, types)
        at = [each.name for each in parameters].index(name)
        parameters[at : at + 1] = options
        return replace_parameters(run, parameters)

    return decorate
