"""Counts lines, shows progress on a terminal, and reports the outcome."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from extcli import clock
from extcli.bulk.input_lines import Input
from extcli.bulk.resume import ResumePoint
from extcli.errors import CliError, ExitCode, status_line
from extcli.output.format import Format
from extcli.output.printer import Output, write_stderr
from extcli.output.sanitize import compact
from extcli.output.streams import flush

_NAMED = 20
_REFRESH_SECONDS = 0.2


class LinesRefused(CliError):
    """All lines were processed, and some were refused or invalid."""

    exit_code = ExitCode.REFUSED


class Report:
    """Counts lines. With `jsonl` refusals are printed at once, otherwise the first twenty at the end.

    The service `refused` a line that was sent. An `invalid` line was not sent.
    """

    def __init__(self, output: Output, source: Input) -> None:
        self.sent = 0
        self.accepted = 0
        self.refused = 0
        self.invalid = 0
        self._output = output
        self._input = source
        self._first: list[dict[str, Any]] = []
        self.resume_point = ResumePoint()
        self._reported: set[str] = set()
        self._started = clock.elapsed()

    def accept(self, number: int) -> None:
        """Count a line that the service accepted."""
        self.resume_point.settle(number)
        self.sent += 1
        self.accepted += 1

    def refuse(self, number: int, status: int | None, reason: str) -> None:
        """Count a line that the service refused; without a status it was invalid and not sent."""
        self.resume_point.settle(number)
        if status is None:
            self.invalid += 1
        else:
            self.sent += 1
            self.refused += 1
        refusal = {"line": number, "status": status, "reason": reason}
        if self._output.format is Format.JSONL:
            self._output.line(compact(refusal))
            flush()
        elif len(self._first) < _NAMED:
            self._first.append(refusal)

    def report_once(self, text: str) -> None:
        """Report this text unless it was reported before."""
        if text not in self._reported:
            self._reported.add(text)
            self._output.report(text)

    def finish(self, ending: str = "", *, repeatable: str = "") -> None:
        """Report the counts: on standard error, and on standard output as `json`.

        After an early `ending` also report where to resume; `repeatable` says why lines may be sent again, if so.
        """
        seconds = max(clock.elapsed() - self._started, 1e-9)
        if self._output.format is Format.JSON:
            lines = {name: getattr(self, name) for name in ("sent", "accepted", "refused", "invalid")}
            progress = self.resume_point.facts() if ending else {}
            self._output.line(compact({**lines, "seconds": round(seconds, 3), "refusals": self._first, **progress}))
        uncertain = bool(self.resume_point.unacknowledged) and not repeatable
        if ending and not (self.sent or self.invalid or uncertain):
            return
        rate = f"{seconds:.1f}s, {self.sent / seconds:,.0f} per second"
        invalid = f", {self.invalid:,} invalid" if self.invalid else ""
        counts = f"{self.sent:,} sent, {self.accepted:,} accepted, {self.refused:,} refused{invalid}"
        self._output.report(f"{counts} ({rate})")
        self._name_refused()
        if ending:
            first, *more = self.resume_point.lines(repeatable)
            for line in (f"{ending}; {first}", *more):
                self._output.report(line)

    def _name_refused(self) -> None:
        """Name the refused and invalid lines. `--quiet` shows them, as they are errors, unless `json` contains them."""
        report = self._output.report if self._output.format is Format.JSON else lambda line: write_stderr([line])
        for refusal in sorted(self._first, key=lambda refusal: int(refusal["line"])):
            status = "invalid" if refusal["status"] is None else status_line(refusal["status"])
            report(f"  line {refusal['line']}: {status}: {refusal['reason']}")
        unnamed = self.refused + self.invalid - len(self._first)
        if unnamed and self._output.format is not Format.JSONL:
            report(f"  and {unnamed:,} more (-o jsonl shows all)")

    def raise_if_refused(self) -> None:
        """Raise `LinesRefused` unless every line was accepted."""
        faults = {"refused": self.refused, "invalid": self.invalid}
        if failed := sum(faults.values()):
            what = " or ".join(name for name, count in faults.items() if count)
            raise LinesRefused(f"{failed:,} of {self.accepted + failed:,} lines were {what}")

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Show a progress bar, on a terminal."""
        if not sys.stderr.isatty() or self._output.quiet:
            yield
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (BarColumn(), TextColumn("{task.fields[count]}"))
        with Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as progress:
            task = progress.add_task("", total=self._input.size, count="")

            async def refresh() -> None:
                while True:
                    count = f"{self.sent:,} line{'s' * (self.sent != 1)}"
                    progress.update(task, completed=self._input.consumed, count=count, refresh=True)
                    await asyncio.sleep(_REFRESH_SECONDS)

            refreshing = asyncio.ensure_future(refresh())
            try:
                yield
            finally:
                refreshing.cancel()
