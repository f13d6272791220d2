"""Counts verdicts, and keeps examples of each."""

from __future__ import annotations

from msgspec import Struct

from emulator.parity.rules import ANSWERS, rule_of, verdict_of


class Example(Struct):
    """A request with a verdict."""

    request_id: str
    endpoint: str
    """Its method and path, or the action of a message over the socket."""
    at: int
    """When it was answered, in Unix ms by the service's clock."""


class Seen(Struct):
    """How often one verdict was given."""

    rule: str
    verdict: str
    """`refuse`, `unknown` or `differ`."""
    count: int
    examples: list[Example]
    """The first request and the latest; one if they are the same."""


class Tally:
    """The verdicts given so far."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}

    def count(self, verdict: str, example: Example) -> None:
        """Count a verdict, and keep the first and the latest example."""
        seen = self._seen.get(verdict)
        if seen is None:
            self._seen[verdict] = Seen(rule_of(verdict), verdict_of(verdict), 1, [example])
        else:
            seen.count += 1
            seen.examples[1:] = [example]

    def clear(self) -> None:
        self._seen.clear()

    @property
    def seen(self) -> list[Seen]:
        """All verdicts so far, in the order of production's checks."""
        order = list(ANSWERS)
        return sorted(self._seen.values(), key=lambda seen: (order.index(seen.rule), seen.verdict))
