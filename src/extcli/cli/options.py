"""Options and arguments of commands. Each stands in the place of a parameter's default, or in `Annotated` if several
commands have it.
"""

from __future__ import annotations

from typing import Any

import typer


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
