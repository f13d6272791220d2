"""Options and arguments of commands. Each stands in the place of a parameter's default, or in `Annotated` if several
commands have it.
"""

from __future__ import annotations

from typing import Any

from typer.models import ArgumentInfo, OptionInfo


def option(names: str, help: str, default: Any = None, **settings: Any) -> Any:
    """Declare an option with a value: `-f --field KEY=VALUE`.

    Without a word for the value, the help lists the choices. In `Annotated`, the parameter has the default, and
    without one the option must be given. `settings` are further fields of Typer's option.
    """
    *declared, value = [*names.split(), ""] if names.rpartition(" ")[2][:1] == "-" else names.split()
    return OptionInfo(default=default, param_decls=declared, metavar=value or None, help=help, **settings)


def flag(names: str, help: str, default: bool | None = False, **settings: Any) -> Any:
    """Declare an option without a value. `names` may have both forms: `--disabled/--enabled`."""
    return OptionInfo(default=default, param_decls=names.split(), help=help, **settings)


def argument(metavar: str, help: str, default: Any = ..., **settings: Any) -> Any:
    """Declare an argument. Without a `default` it must be given."""
    return ArgumentInfo(default=default, metavar=metavar or None, help=help, **settings)
