"""Output that changes on a terminal while a command runs: progress bars, and results of --watch."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any

from extcli.output.format import Format, flush
from extcli.output.printer import Output, View
from extcli.output.sanitize import compact

if TYPE_CHECKING:
    from rich.live import Live

DELAY_SECONDS = 1.0
"""Work that is done sooner shows no bar."""
_REFRESH_SECONDS = 0.2


@contextmanager
def progress_bar(output: Output, what: str, total: int, *, is_bytes: bool = True) -> Iterator[Callable[[int], None]]:
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


@asynccontextmanager
async def progress_bar_of(
    output: Output, total: int | None, done: Callable[[], tuple[int, str]], *, delay: float = DELAY_SECONDS
) -> AsyncIterator[None]:
    """Show a progress bar while an event loop works, after `delay` seconds.

    `done` returns how much of `total` is done, and the same in words.
    """
    if not sys.stderr.isatty() or output.quiet:
        yield
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (rich.BarColumn(), rich.TextColumn("{task.description}"))
    progress = rich.Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
    task = progress.add_task("", total=total)

    async def refresh() -> None:
        await asyncio.sleep(delay)
        progress.start()
        while True:
            completed, text = done()
            progress.update(task, completed=completed, description=text, refresh=True)
            await asyncio.sleep(_REFRESH_SECONDS)

    refreshing = asyncio.ensure_future(refresh())
    try:
        yield
    finally:
        refreshing.cancel()
        if progress.live.is_started:
            progress.stop()


class Watcher:
    """Shows a result again whenever it has changed."""

    def __init__(self, output: Output, live: Live | None, *, as_json: bool) -> None:
        """`live` redraws the terminal. Without it, each result is printed: `as_json`, or in the format."""
        self._output = output
        self._live = live
        self._as_json = as_json
        self._last = ""

    def update(self, value: Any, view: View) -> None:
        """Show a result, unless it equals the previous one."""
        text = compact(value)
        if text == self._last:
            return
        self._last = text
        if self._live:
            self._live.update(view.table(value), refresh=True)
        elif self._as_json:
            self._output.line(text)
        else:
            self._output.print_value(value, view)
        flush()


@contextmanager
def watching(output: Output, *, is_chosen: bool) -> Iterator[None]:
    """Show the results that the block prints in a `Watcher`, which redraws them in place on a terminal.

    Elsewhere each is a line of JSON, unless another format `is_chosen`.
    """
    if output.format is Format.TABLE and sys.stdout.isatty():
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(highlight=False, markup=False, emoji=False), auto_refresh=False) as live:
            output.watcher = Watcher(output, live, as_json=False).update
            yield
    else:
        output.watcher = Watcher(output, None, as_json=not is_chosen or output.format is Format.JSON).update
        yield
