"""What production would have done differently during a run, and whether that is a failure of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from extcli import bounded_json
from extcli.api import local_http
from extcli.errors import CliError, ExitCode, UsageError
from extcli.output.printer import write_stderr
from extcli.output.sanitize import visible
from extcli.parity import COUNTED_ONCE, SHAPE, UNKNOWN, Selection, lines_of
from extcli.reading.shapes import problem_of

PARITY = "parity"
_PATH = "/_emulator/parity?of=service"
_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class FailOn:
    """The verdicts on which a run fails."""

    text: str
    """The option as given."""
    selection: Selection

    @classmethod
    def parse(cls, text: str, *, production: bool, workers: int) -> FailOn:
        """Read `parity`, `parity=RULE,…` or `parity=!RULE,…`. Raises `UsageError`."""
        name, _, rules = text.partition("=")
        if name != PARITY:
            raise UsageError(f"--fail-on {text[:40]!r}: must be {PARITY} or {PARITY}=RULE,…")
        if production:
            raise UsageError("--fail-on: --production gives no verdicts, because it is production")
        if workers > 1:
            raise UsageError("--fail-on: each of --workers counts for itself", fix="use one worker")
        return cls(text, Selection(rules))

    def check(self, url: str) -> int:
        """Report what production would have done differently, and return the exit code. Raises `CliError`."""
        document = _read(url)
        found = self.selection.failures(document)
        if not found:
            unknown = [each for each in document["rules"] if each["verdict"] == UNKNOWN]
            if count := sum(each["count"] for each in unknown):
                least = "at least " if any(each["rule"] == COUNTED_ONCE for each in unknown) else ""
                requests = f"{least}{count} request{'s' if count > 1 else ''}"
                note = f"no verdict on {requests}: the service knows no secret to check their signatures with"
                write_stderr([f"extcli exec: {note}; add --extensions FILE"])
            return ExitCode.DONE
        head = f"extcli exec: production would have acted differently (--fail-on {self.text}):"
        write_stderr([visible(line) for line in (head, *lines_of(found))])
        return ExitCode.EXPECTATION_NOT_MET


def _read(url: str) -> Mapping[str, Any]:
    """Return the counts of a service. Raises `CliError` if it does not answer."""
    try:
        answer = local_http.get(url, _PATH, seconds=_TIMEOUT)
        found = bounded_json.decoded(answer.body) if answer.status == 200 else None
        problem = str(answer.status) if found is None else problem_of(found, SHAPE)
    except (local_http.Failed, ValueError) as error:
        found, problem = None, str(error)
    if found is None or problem:
        raise CliError(f"the service does not say what production would have done: {problem}")
    return dict(found)
