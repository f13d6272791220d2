"""Declares the options of a function for Typer, and adds options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def parameters_of(function: Any, types: Mapping[str, Any] | None = None) -> list[inspect.Parameter]:
    """Return the parameters of a function. `types` resolves names in annotations that its module does not import."""
    return list(inspect.signature(function, eval_str=True, locals=types).parameters.values())


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
