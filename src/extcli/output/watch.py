"""Results that are shown again when they change: redrawn on a terminal, one JSON line per change in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from extcli.output.format import Format
from extcli.output.printer import Output, View
from extcli.output.sanitize import compact
from extcli.output.streams import flush

if TYPE_CHECKING:
    from rich.live import Live


class Watcher:
    """Shows each result that differs from the one before."""

    def __init__(self, output: Output, live: Live | None) -> None:
        """`live` redraws the terminal; without it, results are lines of JSON."""
        self._output = output
        self._live = live
        self._last = ""

    def see(self, value: Any, view: View) -> None:
        """Show a result, unless it is the last one."""
        text = compact(value)
        if text == self._last:
            return
        self._last = text
        if self._live:
            self._live.update(view.table(value), refresh=True)
        else:
            self._output.line(text)
            flush()


@contextmanager
def watching(output: Output) -> Iterator[None]:
    """Show the results of the block by a `Watcher`."""
    if output.format is Format.TABLE and sys.stdout.isatty():
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(highlight=False, markup=False, emoji=False), auto_refresh=False) as live:
            output.watcher = Watcher(output, live)
            yield
    else:
        output.watcher = Watcher(output, None)
        yield
