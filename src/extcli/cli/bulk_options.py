"""The options of commands that send one value, or with --from the lines of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from extcli.cli.options import option
from extcli.errors import UsageError

Concurrency = Annotated[
    int, option("--concurrency N", "With --from: the number of parallel requests.", min=1, max=1024)
]
Columns = Annotated[
    str | None,
    option("--columns USER,VALUE", "With --from: the names of the file's two columns, separated by a comma."),
]
Skip = Annotated[
    int, option("--skip N", "With --from: skip this many lines, to resume an earlier run.", min=0, show_default=False)
]


def one_or_file(one: str | None, source: Path | None, option: str, *, columns: str | None, skip: int) -> str | Path:
    """Return the one value, or the file. `option` is the option for the one value: `--key TEXT`.

    Raises `UsageError` if both are given, or neither, or options without the file that they are about.
    """
    if source is not None and one is None:
        return source
    if source is not None or one is None:
        raise UsageError(f"give either {option} or --from FILE")
    refuse_without_file({"--columns": columns, "--skip": skip})
    return one


def refuse_without_file(options: Mapping[str, object]) -> None:
    """Raise `UsageError` if an option is given that needs --from."""
    for name, value in options.items():
        if value not in (None, 0):
            raise UsageError(f"{name} requires --from", why="it is about the lines of a file")
