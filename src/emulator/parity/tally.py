"""Counts verdicts, and keeps examples of each."""

from __future__ import annotations

from msgspec import Struct

from emulator.parity.rules import ANSWERS, FOR_SANDBOX, rule_of, verdict_of


class Example(Struct, gc=False):
    """A request with a verdict."""

    request_id: str
    endpoint: str
    """Its method and path, or the action of a message over the socket."""
    at: int
    """When it was answered, in Unix ms by the service's clock."""


class Seen(Struct):
    """The count of one verdict."""

    rule: str
    verdict: str
    """`refuse`, `unknown` or `differ`."""
    count: int
    examples: list[Example]
    """The first request and the latest; one if they are the same."""


class _Count:
    __slots__ = ("count", "first", "latest")

    def __init__(self, first: Example) -> None:
        self.count, self.first, self.latest = 1, first, first

    @property
    def examples(self) -> list[Example]:
        return [self.first] if self.count == 1 else [self.first, self.latest]


class Tally:
    """The verdicts given so far."""

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}

    def count(self, verdict: str, example: Example) -> None:
        """Count a verdict, and keep the first and the latest example. `FOR_SANDBOX` counts once."""
        found = self._counts.get(verdict)
        if found is None:
            self._counts[verdict] = _Count(example)
        elif verdict != FOR_SANDBOX:
            found.count += 1
            found.latest = example

    def clear(self) -> None:
        self._counts.clear()

    @property
    def seen(self) -> list[Seen]:
        """All verdicts so far, in the order of production's checks."""
        order = list(ANSWERS)
        counts = sorted(self._counts.items(), key=lambda item: (order.index(rule_of(item[0])), item[0]))
        return [Seen(rule_of(verdict), verdict_of(verdict), each.count, each.examples) for verdict, each in counts]
