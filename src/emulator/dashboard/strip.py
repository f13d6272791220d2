"""The strip above the requests: the latest five minutes of the journal as bars. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, NamedTuple

from emulator.clock import SECOND
from emulator.dashboard.texts import instant
from emulator.journal import DELIVERY, Entry

BAR: Final = 10 * SECOND
"""What one bar shows, in ms."""
BARS: Final = 30
_HEIGHT: Final = 40.0


class Part(NamedTuple):
    """A rectangle of a bar, in the units of the picture, whose height is 40."""

    kind: str
    top: float
    """The distance of its upper edge from the lower edge of the picture."""
    height: float


@dataclass
class Bar:
    """The entries of ten seconds."""

    at: str
    """The time at which they begin."""
    requests: int = 0
    """Requests and frames."""
    refused: int = 0
    """How many of them were refused."""
    deliveries: int = 0
    first: int = 0
    """The number of the earliest entry."""
    last: int = 0
    """The number of the latest entry; 0 without one."""

    def parts(self, highest: int) -> list[Part]:
        """Return the rectangles of this bar from below, if the highest bar has this many entries."""
        found, top = list[Part](), 0.0
        accepted = self.requests - self.refused
        for kind, count in (("refused", self.refused), ("requests", accepted), ("deliveries", self.deliveries)):
            if count:
                height = _HEIGHT * count / highest
                top += height
                found.append(Part(kind, top, height))
        return found


class Strip(NamedTuple):
    """The bars of the latest five minutes, oldest first, and their sums."""

    bars: list[Bar]
    highest: int
    """Entries of the highest bar; 0 if there is nothing to see."""
    requests: int
    refused: int
    deliveries: int


def strip_of(newest: Iterable[Entry], now: int) -> Strip:
    """Count the entries of the latest five minutes. They are given newest first; `now` is in Unix ms."""
    start = (now // BAR + 1 - BARS) * BAR
    bars = [Bar(instant(start + number * BAR)[11:19]) for number in range(BARS)]
    for entry in takewhile(lambda entry: entry.at >= start, newest):
        if entry.is_probe or entry.at > now:
            continue
        bar = bars[(entry.at - start) // BAR]
        if entry.kind == DELIVERY:
            bar.deliveries += 1
        else:
            bar.requests += 1
            bar.refused += bool(entry.reason)
        bar.first = entry.number
        bar.last = bar.last or entry.number
    requests, refused = sum(bar.requests for bar in bars), sum(bar.refused for bar in bars)
    highest = max(bar.requests + bar.deliveries for bar in bars)
    return Strip(bars, highest, requests, refused, sum(bar.deliveries for bar in bars))
