"""What a terminal gets besides plain text: colors by meaning, lines that end at words, bars, and progress."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from textwrap import wrap
from threading import Timer
from typing import TYPE_CHECKING, TextIO

from extcli import __version__

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.text import Text

STYLES = {
    "heading": "bold",
    "leader": "bold",
    "command": "cyan",
    "good": "green",
    "warning": "yellow",
    "bad": "red",
    "quiet": "dim",
}
"""Every style, by its meaning: `command` is what to type next, `warning` what was refused, `bad` what failed."""
_STYLED_PARTS = {
    r"`extcli [^`]+`|^ *extcli [a-z-].*$": "command",
    r"\b4\d\d(?: [A-Z][a-zA-Z]+)+": "warning",
    r"\b5\d\d(?: [A-Z][a-zA-Z]+)+": "bad",
    r"^  got {7}.*(?:\n {12}.*)*": "bad",
    r"^  expected {2}.*(?:\n {12}.*)*": "good",
    r"^(?:extcli|Why|What to do|Hint|Production):": "heading",
}
"""The style of parts of a text."""
_COMMAND_LINE = re.compile(r" *extcli [a-z-]")
_LABEL = re.compile(r" *(?:\S+(?: \S+)? {2,})?")
"""What the further lines of a long line are indented by: its indentation, with the name of a fact."""


def has_colors(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colors, and the user wants them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")


def styled_console(stream: TextIO) -> Console:
    """Return a console that knows all styles. It has none if the stream has no colors."""
    from rich.console import Console
    from rich.theme import Theme

    return Console(
        file=stream,
        theme=Theme(STYLES),
        color_system="auto" if has_colors(stream) else None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def print_renderable(shown: RenderableType, stream: TextIO) -> None:
    """Print to a stream. Lines of a `Text`, and words longer than a line, are left as they are, to be copied."""
    from rich.text import Text

    styled_console(stream).print(shown, crop=False, soft_wrap=isinstance(shown, Text))


def unwrapped_text(text: str) -> Text:
    """Return a text whose lines are left as they are, however long."""
    from rich.text import Text

    return Text(text, no_wrap=True, overflow="ignore")


def colored_text(text: str) -> Text:
    """Return a text with the colors of its parts."""
    from rich.text import Text

    made = Text(text)
    for pattern, style in _STYLED_PARTS.items():
        made.highlight_regex(re.compile(pattern, re.MULTILINE), style)
    return made


class Prose:
    """Text that is wrapped at words, in colors. Elsewhere than on a terminal its lines stay whole."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, styled_console: Console, options: ConsoleOptions) -> RenderResult:
        made = colored_text(wrap_lines(self._text, options.max_width) if styled_console.is_terminal else self._text)
        made.no_wrap, made.overflow = True, "ignore"
        yield made


def wrap_lines(text: str, width: int, indent: int | None = None) -> str:
    """Return the text with no line longer than `width`, except for long words, and for commands, which are copied.

    Further lines have this `indent`; by default that of the line, with the name of a fact.
    """
    found: list[str] = []
    for line in text.split("\n"):
        label = _LABEL.match(line)
        own = len(label[0]) if label and len(label[0]) <= width // 2 else 0
        start = " " * (own if indent is None else indent)
        is_command = _COMMAND_LINE.match(line)
        parts = wrap(line, width, subsequent_indent=start, break_long_words=False, break_on_hyphens=False)
        found += [line] if is_command or not parts else parts
    return "\n".join(found)


def colored_help(text: str) -> str:
    """Return the help of a command, in colors if standard output has them."""
    if not has_colors(sys.stdout):
        return text
    from typer import style

    text = re.sub(r"(?m)^(?:Usage:|[A-Z].*:$)", lambda found: style(found[0], bold=True), text)
    return re.sub(r"(?m)(?<=^  )extcli .*?(?=  |$)|`extcli [^`]+`", lambda found: style(found[0], fg="cyan"), text)


# Bars


def bar(share: float) -> RenderableType:
    """Return a bar that takes the width it is given, of which it fills `share`."""
    from rich.progress_bar import ProgressBar

    return ProgressBar(1.0, share, style="quiet", complete_style="none", finished_style="none")


_DELAY_SECONDS = 1.0
"""Work that is done sooner shows no bar."""


@contextmanager
def progress_bar(total: int | None, *, quiet: bool, of_bytes: str = "") -> Iterator[Callable[[int], None]]:
    """Show a bar with the rate and the time left, if the work takes long.

    Yields a function that takes how many steps of `total` are done; or bytes, if `of_bytes` says what is done to them.
    """
    if not sys.stderr.isatty() or quiet:
        yield lambda _: None
        return
    from rich import progress as rich
    from rich.table import Column
    from rich.text import Text

    class CountColumn(rich.ProgressColumn):
        def render(self, task: rich.Task) -> Text:
            total = "so far" if task.total is None else f"of {task.total:,.0f}"
            return Text(f"{task.completed:,.0f} {total}" + (f" · {task.speed:,.0f}/s" if task.speed else ""))

    columns: list[rich.ProgressColumn] = [CountColumn(Column(no_wrap=True))]
    if of_bytes:
        columns = [rich.TextColumn(of_bytes), rich.DownloadColumn(), rich.TransferSpeedColumn()]
    progress = rich.Progress(
        *columns,
        rich.TimeRemainingColumn(),
        rich.BarColumn(None, style="quiet", complete_style="none", finished_style="none"),
        console=styled_console(sys.stderr),
        transient=True,
        expand=True,
    )
    task = progress.add_task("", total=total)
    starting = Timer(_DELAY_SECONDS, progress.start)
    starting.start()
    try:
        yield lambda done: progress.update(task, completed=done)
    finally:
        starting.cancel()
        starting.join()
        if progress.live.is_started:
            progress.stop()


# The banner of `serve`

_DEFAULT_URL = "http://127.0.0.1:8282"


def banner(url: str, environment: str, location: str) -> Text:
    """Return what `serve` shows when it listens at `url`: its addresses, and the place of its data."""
    from rich.text import Text

    from extcli.output.sanitize import visible

    place = f"{visible(location)} (lost when the service stops)" if location == "memory" else visible(location)
    heading = wrap_lines(f"  extcli {__version__} · {environment} · data in {place}", get_terminal_size().columns)
    made = Text.assemble((heading, "heading"), f"\n  API        {url}\n")
    if environment == "sandbox":
        demo = "extcli demo" if url == _DEFAULT_URL else f"extcli --url {url} demo"
        made.append(f"  Dashboard  {url}/_emulator/\n  Demo       ").append(demo, "command")
        made.append(f'\n  Page       <script src="{url}/_emulator/sdk.js"></script>\n')
    return made.append("  Ctrl-C stops")
