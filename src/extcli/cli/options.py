"""Options and arguments of commands, as Typer reads them. Each stands in the place of a parameter's default, or in
`Annotated` if several commands have it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import wraps
from typing import Annotated, Any, TypeVar

import typer
from typer.models import ParameterInfo

F = TypeVar("F", bound=Callable[..., Any])


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
    return [_as_annotated(each) for each in found]


def _as_annotated(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter as Typer reads it: the declaration in `Annotated`, without a default in it."""
    kind, info, default = parameter.annotation, parameter.default, parameter.default
    if isinstance(info, ParameterInfo):
        default = inspect.Parameter.empty if info.default is ... else info.default
    elif metadata := getattr(kind, "__metadata__", None):
        kind, info = kind.__origin__, metadata[0]
    if not isinstance(info, ParameterInfo):
        return parameter
    declared = copy(info)
    declared.default = ...
    annotated: Any = Annotated
    return parameter.replace(annotation=annotated[kind, declared], default=default)


def declare(function: F, parameters: Iterable[inspect.Parameter]) -> F:
    """Make Typer read these parameters instead of the function's own."""
    declared: Any = function
    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    declared.__signature__ = inspect.Signature(named)
    declared.__annotations__ = {each.name: each.annotation for each in named}
    vars(declared).pop("__wrapped__", None)
    return function


def with_options(name: str, group: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options that `group` declares, in place of its parameter `name`.

    That parameter receives what `group` returns. Both take the `Session` first.
    """
    # The group's return types may be imported for type checking only.
    types = {inspect.signature(group).return_annotation: Any}
    _, *options = parameters_of(group, types)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(session: Any, **values: Any) -> Any:
            given = {each.name: values.pop(each.name) for each in options}
            return function(session, **values, **{name: group(session, **given)})

        own = parameters_of(function, types)
        return declare(run, [each for one in own for each in (options if one.name == name else [one])])

    return decorate
