"""Counts lines, and tracks which are processed, so that a run that ended early can be resumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import itemgetter

from extcli import clock
from extcli.errors import CliError, ExitCode, status_line
from extcli.output.format import Format, flush
from extcli.output.printer import Output, write_stderr
from extcli.output.sanitize import compact
from extcli.reading import Json

_MAX_NAMED_LINES = 20
"""Refused and invalid lines that are named at the end."""


class LinesRefused(CliError):
    """All lines were processed, and some were refused or invalid."""

    exit_code = ExitCode.REFUSED


class RunReport:
    """Counts accepted and refused lines. With `jsonl`, prints refusals at once, otherwise the first twenty at the end.

    The service `refused` a line that was sent. An `invalid` line was not sent.
    """

    def __init__(self, output: Output) -> None:
        self.output = output
        self.counts = Counter(accepted=0, refused=0, invalid=0)
        self.on_progress: Callable[[int], None] = lambda _: None
        """Called with the number of lines that are processed."""
        self._first_refusals: list[Json] = []
        self._reported: set[str] = set()
        self._started = clock.elapsed()
        self._pending: set[int] = set()
        self._unacknowledged: set[int] = set()
        self._last = 0
        self._last_sent = 0

    def add_lines(self, numbers: Sequence[int]) -> None:
        """Add the next lines to send, in their order."""
        self._pending.update(numbers)
        self._last = numbers[-1]

    def mark_sent(self, number: int) -> None:
        """Record that the service may have applied the line."""
        self._unacknowledged.add(number)
        self._last_sent = max(self._last_sent, number)

    def mark_not_applied(self, number: int) -> None:
        """Record that the service has not applied the line."""
        self._unacknowledged.discard(number)

    def accept(self, number: int) -> None:
        """Count a line that the service accepted."""
        self.counts["accepted"] += 1
        self._mark_processed(number)

    def refuse(self, number: int, status: int | None, reason: str) -> None:
        """Count a line that the service refused for good; without a status it was invalid and not sent."""
        self.counts["invalid" if status is None else "refused"] += 1
        self._mark_processed(number)
        refusal = {"line": number, "status": status, "reason": reason}
        if self.output.format is Format.JSONL:
            self.output.line(compact(refusal))
            flush()
        elif len(self._first_refusals) < _MAX_NAMED_LINES:
            self._first_refusals.append(refusal)

    def _mark_processed(self, number: int) -> None:
        self._pending.discard(number)
        self._unacknowledged.discard(number)
        self.on_progress(self.counts.total())

    def report_once(self, text: str) -> None:
        """Report this text unless it was reported before."""
        if text not in self._reported:
            self._reported.add(text)
            self.output.report(text)

    def finish(self, ending: str = "", *, repeatable: str = "") -> None:
        """Report the counts: on standard error, and on standard output as `json`.

        If the run ended early, with `ending`, also report where to resume. `repeatable` says why lines may be sent
        again.
        """
        seconds = max(clock.elapsed() - self._started, 1e-9)
        counts, state = self.counts, self.resume_state()
        sent = counts["accepted"] + counts["refused"]
        if self.output.format is Format.JSON:
            refusals = {"seconds": round(seconds, 3), "refusals": sorted(self._first_refusals, key=itemgetter("line"))}
            self.output.line(compact({"sent": sent, **counts, **refusals, **(state if ending else {})}))
        uncertain = bool(state["unacknowledged"]) and not repeatable
        if ending and not (counts.total() or uncertain):
            return
        invalid = f", {counts['invalid']:,} invalid" if counts["invalid"] else ""
        said = f"{sent:,} sent, {counts['accepted']:,} accepted, {counts['refused']:,} refused{invalid}"
        self.output.report(f"{said} ({seconds:.1f}s, {sent / seconds:,.0f} per second)")
        self._name_refused()
        if ending:
            first, *more = _where_to_resume(state, repeatable)
            for line in (f"{ending}; {first}", *more):
                self.output.report(line)

    def resume_state(self) -> Json:
        """Return which lines are processed, as `-o json` prints it.

        Lines are `not_sent` although a later one was, because users are spread over connections.
        """
        passed = {number for number in self._pending if number <= self._last_sent}
        return {
            "dealt_with_to": min(self._pending, default=self._last + 1) - 1,
            "unacknowledged": sorted(self._unacknowledged),
            "not_sent": sorted(passed - self._unacknowledged),
            "nothing_sent_after": self._last_sent,
        }

    def _name_refused(self) -> None:
        """Report the refused and invalid lines.

        As errors they are shown even with `--quiet`, unless the JSON output has them.
        """
        report = self.output.report if self.output.format is Format.JSON else lambda line: write_stderr([line])
        for refusal in sorted(self._first_refusals, key=itemgetter("line")):
            status = "invalid" if refusal["status"] is None else status_line(refusal["status"])
            report(f"  line {refusal['line']}: {status}: {refusal['reason']}")
        unnamed = self.counts["refused"] + self.counts["invalid"] - len(self._first_refusals)
        if unnamed and self.output.format is not Format.JSONL:
            report(f"  and {unnamed:,} more (-o jsonl shows all)")

    def raise_if_refused(self) -> None:
        """Raise `LinesRefused` unless every line was accepted."""
        failed = self.counts.total() - self.counts["accepted"]
        if failed:
            what = " or ".join(name for name in ("refused", "invalid") if self.counts[name])
            raise LinesRefused(f"{failed:,} of {self.counts.total():,} lines were {what}")


def _where_to_resume(state: Json, repeatable: str) -> list[str]:
    """Return the state as lines of text. `repeatable` says why lines may be sent again; empty if they may not."""
    settled, furthest = state["dealt_with_to"], state["nothing_sent_after"]
    lines = [f"all lines up to {settled:,} are processed"]
    if state["unacknowledged"]:
        lines.append(f"  sent but unconfirmed: {_named_lines(state['unacknowledged'])}")
    if repeatable and settled:
        lines.append(f"  to resume, add --skip {settled}: {repeatable}")
    elif not repeatable:
        if state["not_sent"]:
            lines.append(f"  not sent: {_named_lines(state['not_sent'])}")
        lines.append(f"  nothing was sent after line {furthest:,}; --skip {furthest} resumes there")
    return lines


def _named_lines(numbers: Sequence[int]) -> str:
    """Return `line 3`, or `lines 3, 5-9`: resuming by hand needs each."""
    starts = [0, *(at + 1 for at, (one, other) in enumerate(pairwise(numbers)) if other != one + 1)]
    ranges = [numbers[start:end] for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True)]
    shown = ", ".join(str(each[0]) if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in ranges)
    return f"line{'s' * (len(numbers) != 1)} {shown}"
