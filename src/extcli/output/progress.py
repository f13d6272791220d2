"""A progress bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from extcli.output.printer import Output

DELAY_SECONDS = 1.0
"""Work that is done sooner shows no bar."""


@contextmanager
def shown(output: Output, what: str, total: int, *, is_bytes: bool = True) -> Iterator[Callable[[int], None]]:
    """Show a bar if the work takes longer than `DELAY_SECONDS`; of bytes, with rate and time left.

    Yields a function that takes the number of bytes or steps done, of `total`.
    """
    if not sys.stderr.isatty() or output.quiet:
        yield lambda _: None
        return
    from rich import progress as rich
    from rich.console import Console

    of_bytes = (rich.DownloadColumn(), rich.TransferSpeedColumn(), rich.TimeRemainingColumn())
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        *(of_bytes if is_bytes else [rich.MofNCompleteColumn()]),
    )
    progress = rich.Progress(*columns, console=Console(stderr=True), refresh_per_second=5, transient=True)
    task = progress.add_task(what, total=total)
    starting = Timer(DELAY_SECONDS, progress.start)
    starting.start()
    try:
        yield lambda done: progress.update(task, completed=done)
    finally:
        starting.cancel()
        starting.join()
        if progress.live.is_started:
            progress.stop()
