"""A progress bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from extcli.output.printer import Output


@contextmanager
def shown(output: Output, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar with rate and time left. Yields a function that takes the number of bytes done, of `total`."""
    if not sys.stderr.isatty() or output.quiet:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    task_name = TextColumn("{task.description}")
    columns = (task_name, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=5, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)
