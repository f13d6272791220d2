"""Options that several commands have, declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any


def with_options(name: str, group: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options that `group` declares, in place of its parameter `name`.

    That parameter receives what `group` returns. Both take the `Session` first.
    """
    # What the group returns may be imported for type checking only.
    types = {inspect.signature(group).return_annotation: Any}
    _, *options = inspect.signature(group, eval_str=True, locals=types).parameters.values()

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(session: Any, **values: Any) -> Any:
            given = {each.name: values.pop(each.name) for each in options}
            return function(session, **values, **{name: group(session, **given)})

        parameters = inspect.signature(function, eval_str=True, locals=types).parameters.values()
        first, *rest = [each for own in parameters for each in (options if own.name == name else [own])]
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [first, *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in rest)]
        )
        del run.__wrapped__
        return run

    return decorate
