"""Tracks which lines are processed, so that a run that ended early can be resumed without sending a line twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import pairwise
from typing import Any

from extcli import clock
from extcli.bulk.input_lines import Input
from extcli.errors import CliError, ExitCode, status_line
from extcli.output.format import Format, flush
from extcli.output.printer import Output, write_stderr
from extcli.output.progress import progress_bar_of
from extcli.output.sanitize import compact

_MAX_RANGES = 500
"""Ranges of lines to name, usually all of them: resuming by hand needs each."""


class ResumePoint:
    """Tracks for each line whether it is settled, sent but unacknowledged, or not sent."""

    def __init__(self) -> None:
        self._pending: dict[int, None] = {}
        self._unacknowledged: set[int] = set()
        self._last = 0
        self._furthest = 0

    def add(self, numbers: Iterable[int]) -> None:
        """Add the next lines to send, in their order."""
        for number in numbers:
            self._pending[number] = None
            self._last = number

    def mark_sent(self, number: int) -> None:
        """Record that the service may have applied the line."""
        self._unacknowledged.add(number)
        self._furthest = max(self._furthest, number)

    def mark_not_applied(self, number: int) -> None:
        """Record that the service has not applied the line."""
        self._unacknowledged.discard(number)

    def settle(self, number: int) -> None:
        """Record that the service has applied the line, or has refused it for good."""
        self._pending.pop(number, None)
        self._unacknowledged.discard(number)

    @property
    def last_settled_line(self) -> int:
        """The last line up to which all lines are settled."""
        return min(self._pending, default=self._last + 1) - 1

    @property
    def unacknowledged(self) -> list[int]:
        return sorted(self._unacknowledged)

    @property
    def not_sent(self) -> list[int]:
        """The lines that were not sent although a later line was, because users are spread over connections."""
        return sorted(n for n in self._pending if n <= self._furthest and n not in self._unacknowledged)

    def facts(self) -> dict[str, Any]:
        """Return the state as a JSON object."""
        return {
            "dealt_with_to": self.last_settled_line,
            "unacknowledged": self.unacknowledged,
            "not_sent": self.not_sent,
            "nothing_sent_after": self._furthest,
        }

    def lines(self, repeatable: str) -> list[str]:
        """Return the state as lines of text. `repeatable` says why lines may be sent again; empty if they may not."""
        lines = [f"all lines up to {self.last_settled_line:,} are processed"]
        if self._unacknowledged:
            lines.append(f"  sent but unconfirmed: {_named_lines(self.unacknowledged)}")
        if repeatable and self.last_settled_line:
            lines.append(f"  to resume, add --skip {self.last_settled_line}: {repeatable}")
        elif not repeatable:
            if self.not_sent:
                lines.append(f"  not sent: {_named_lines(self.not_sent)}")
            lines.append(f"  nothing was sent after line {self._furthest:,}; --skip {self._furthest} resumes there")
        return lines


def _named_lines(numbers: Sequence[int]) -> str:
    """Return `line 3`, or `lines 3, 5-9`, with at most `_MAX_RANGES` ranges."""
    starts = [0, *(at + 1 for at, (one, other) in enumerate(pairwise(numbers)) if other != one + 1)]
    ranges = [numbers[start:end] for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True)]
    shown = ", ".join(str(each[0]) if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in ranges[:_MAX_RANGES])
    unnamed = sum(map(len, ranges[_MAX_RANGES:]))
    more = f" and {unnamed:,} more (-o json shows all)" if unnamed else ""
    return f"line{'s' * (len(numbers) != 1)} {shown}{more}"


_NAMED = 20


class LinesRefused(CliError):
    """All lines were processed, and some were refused or invalid."""

    exit_code = ExitCode.REFUSED


class Report:
    """Counts accepted and refused lines. With `jsonl`, prints refusals at once, otherwise the first twenty at the end.

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

        If the run ended early, with `ending`, also report where to resume. `repeatable` says why lines may be sent
        again.
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
        """Report the refused and invalid lines.

        As errors they are shown even with `--quiet`, unless the JSON output has them.
        """
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

    def shown(self) -> AbstractAsyncContextManager[None]:
        """Show a progress bar, on a terminal."""

        def done() -> tuple[int, str]:
            return self._input.consumed, f"{self.sent:,} line{'s' * (self.sent != 1)}"

        return progress_bar_of(self._output, self._input.size, done, delay=0)
