"""The options of commands that take many lines, beside `--from`."""

from __future__ import annotations

from typing import Annotated

import typer

Concurrency = Annotated[int, typer.Option(metavar="N", min=1, max=1024, help="With --from: requests at once.")]
Skip = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, help="With --from: leave out lines up to this number, to go on.", show_default=False
    ),
]
