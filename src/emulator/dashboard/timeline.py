"""The last five minutes of a journal, in bars of five seconds, and the picture of them with its lanes.

Its times are the system's: the service's clock may stand still, or move by hours at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from emulator.control.journal.rules import ANY, EntryPredicate, predicate
from emulator.core.clock import SECOND
from emulator.core.faults import ArmedFault
from emulator.core.journal import DELIVERY, REQUEST, Entry, Journal
from emulator.core.wire.url import SERVICE, parameters_of
from emulator.dashboard.screen import Service
from emulator.dashboard.screens.broadcasts import EVENT_PREFIX
from emulator.dashboard.screens.faults import effect_of
from emulator.dashboard.texts import instant, offset
from emulator.features.votes.service import PollConfigBody

BAR_MS = 5 * SECOND
BARS = 60
VOTE_ENDPOINT = "POST /v1/e/vote"
_DEFINE_ENDPOINT = "POST /v1/e/vote_config"
_CLOCK_ENDPOINT = "POST /_emulator/clock"
_MAX_DURATIONS = 500
"""Requests of a bar whose durations are kept."""
_MAX_EVENTS = 50
"""Events of a bar that are kept."""
_ENTRIES_PER_STEP = 1_000
"""Entries that are counted before other requests run."""
_MAX_GAP = 2
"""Bars without a hit after which a fault has ended, unless it still acts."""
LABEL_WIDTH = 14.0
"""Percent of the width that a label takes."""
_LABEL_ROWS = 2
"""Rows of marks with labels."""


class Mark(NamedTuple):
    """A mark of a lane, which leads to what it shows."""

    title: str
    screen: str
    query: Mapping[str, object]
    left: float = 0
    """In percent of the width, as all sizes here."""
    size: float = 0
    """The height of a bar, or the width of a span."""
    sign: str = ""
    label: str = ""
    """The text beside the sign."""
    row: int = 0
    is_late: bool = False
    """Whether the label must stand before the sign: after it, there is no space."""


@dataclass
class Bar:
    """What happened in five seconds."""

    at: int = 0
    """Unix ms of the first entry by the service's clock."""
    first: int = 0
    """The number of the first entry."""
    last: int = 0
    requests: int = 0
    """Requests and frames."""
    votes: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """The reasons of the refused ones."""
    refused: int = 0
    """The number of the latest refused one."""
    broadcasts: dict[int, str] = field(default_factory=dict)
    """Their events, by the number of their delivery to games."""
    durations: list[float] = field(default_factory=list)
    """Seconds that requests of the service API took."""
    faults: Counter[str] = field(default_factory=Counter)
    """Hits by fault."""
    events: list[Mark] = field(default_factory=list)
    """Moves of the clock, and definitions of polls."""

    def add(self, entry: Entry) -> None:
        """Add an entry, after those before it."""
        if not self.last:
            self.at, self.first = entry.at, entry.number
        self.last = entry.number
        if entry.fault:
            self.faults[entry.fault] += 1
        if entry.kind == DELIVERY:
            if entry.name.startswith(EVENT_PREFIX):
                self.broadcasts[entry.number] = entry.name.removeprefix(EVENT_PREFIX)
            return
        self.requests += 1
        if entry.reason:
            self.reasons[entry.reason] += 1
            self.refused = entry.number
        elif entry.name == VOTE_ENDPOINT:
            self.votes += 1
        elif len(self.events) < _MAX_EVENTS:
            self.events += _control_marks(entry)
        if entry.kind == REQUEST and SERVICE in entry.name and len(self.durations) < _MAX_DURATIONS:
            self.durations.append(entry.seconds)


def poll_in_query(entry: Entry) -> str:
    """Return the id of the poll that the address of a request names."""
    return parameters_of(entry.path.partition("?")[2]).get("id", "default")


def _control_marks(entry: Entry) -> Iterator[Mark]:
    """Yield the mark of a move of the clock, or of a definition that opens or closes a poll."""
    if entry.name == _CLOCK_ENDPOINT:
        moved = "frozen" if b'"frozen":true' in entry.response else offset(entry.offset)
        yield Mark(f"clock: {moved}", "clock", {}, sign="⚑", label=moved)
    elif entry.name == _DEFINE_ENDPOINT and (caller := entry.caller):
        try:
            body = msgspec.json.decode(entry.request, type=PollConfigBody)
        except msgspec.MsgspecError:  # cut, or a form
            return
        id, is_end = body.id or poll_in_query(entry), body.config.disabled or body.config.ends_at < 0
        poll = {"id": id, "client_id": caller.client_id, "channel_id": caller.channel_id}
        sign, did = ("▼", "closed") if is_end else ("▲", "defined")
        yield Mark(f"poll {id} {did}", "polls", poll, sign=sign, label=f"{id[:10]} {did}")


class Activity:
    """The latest five minutes of a journal, of the entries that match. It reads each entry once."""

    def __init__(self, matches: EntryPredicate) -> None:
        self.bars = [Bar() for _ in range(BARS)]
        """Oldest first; the last one has the present."""
        self._end = 0
        """Unix ms by the system's clock at which the last bar ends."""
        self._matches = matches
        self._mark = 0

    async def follow(self, journal: Journal) -> None:
        """Count what is new in a journal, and forget what it no longer keeps."""
        while entries := journal.since(self._mark, _ENTRIES_PER_STEP):
            self._mark = entries[-1].number
            for entry in entries:
                self.add(entry)
            await asyncio.sleep(0)
        self.move_to(journal.clock.now() - journal.clock.offset)
        lost = journal.mark - len(journal)
        self.bars = [bar if bar.last > lost else Bar() for bar in self.bars]

    def add(self, entry: Entry) -> None:
        """Add an entry, after those before it."""
        at = entry.at - entry.offset
        self.move_to(at)
        place = BARS - 1 - (self._end - 1 - at) // BAR_MS
        if place >= 0 and self._matches(entry):
            self.bars[place].add(entry)

    def move_to(self, system_now: int) -> None:
        """Move the bars to a time by the system's clock."""
        shift = min(BARS, (system_now - self._end) // BAR_MS + 1)
        if shift > 0:
            self.bars = self.bars[shift:] + [Bar() for _ in range(shift)]
            self._end = (system_now // BAR_MS + 1) * BAR_MS


async def latest_bars(service: Service, filters: Mapping[str, str]) -> list[Bar]:
    """Return the latest five minutes of the entries that these filters select. Raises `BadRequest`."""
    given = tuple(filters.items())
    found: Activity = service.activities.get(given) or Activity(predicate(filters))
    service.activities[given] = found
    await found.follow(service.journal)
    return found.bars


def timeline_lanes(
    bars: Sequence[Bar], faults: Mapping[str, ArmedFault], filters: Mapping[str, str]
) -> dict[str, list[Mark]]:
    """Return the marks of each lane. `faults` are those of the service, and `filters` chose the bars."""
    requests: list[Mark] = []
    refused: list[Mark] = []
    broadcasts: list[Mark] = []
    control = list(_spans(bars, faults))
    highest = max(bar.requests for bar in bars)
    for place, bar in enumerate(bars):
        left, time = 100 * place / BARS, instant(bar.at)[11:19]
        within = {**filters, "since": bar.first - 1, "before": bar.last + 1}
        if bar.requests:
            title = f"{time}: {bar.requests:,} {'request' if bar.requests == 1 else 'requests'}"
            requests.append(Mark(title, "requests", within, left, 100 * bar.requests / highest))
        if count := bar.reasons.total():
            lead = {"entry": bar.refused} if count == 1 else {"reason": ANY, **within}
            refused.append(Mark(f"{time}: {count:,} refused: {', '.join(bar.reasons)}", "requests", lead, left))
        if bar.broadcasts:
            title = f"{time}: {', '.join(dict.fromkeys(bar.broadcasts.values()))}"
            broadcasts.append(Mark(title, "requests", {"entry": max(bar.broadcasts)}, left))
        control += [event._replace(left=left) for event in bar.events]
    return {"requests": requests, "refused": refused, "broadcasts": broadcasts, "control": _place_in_rows(control)}


def _spans(bars: Sequence[Bar], faults: Mapping[str, ArmedFault]) -> Iterator[Mark]:
    """Yield each time that a fault acted: from its first hit to its latest, or until now if it still acts."""
    for id in {id: None for bar in bars for id in bar.faults}:
        acts, effect = False, ""
        if id in faults:
            acts, effect = not faults[id].is_over, f" {effect_of(faults[id].fault)}"
        runs = _hit_runs([bar.faults[id] for bar in bars])
        for first, last, hits in runs:
            end = last + 1
            if acts and last == runs[-1][1]:
                end = BARS
            count = f"{hits:,} {'hit' if hits == 1 else 'hits'}"
            left = 100 * first / BARS
            size = 100 * (end - first) / BARS
            yield Mark(f"fault {id}{effect}, {count}", "faults", {}, left, size, label=f"{id[:10]} · {count}")


def _hit_runs(hits: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the first and the last place of each run of hits, and their sum. A run has no longer lull in it."""
    runs = list[tuple[int, int, int]]()
    for place, count in enumerate(hits):
        if not count:
            continue
        first, last, total = runs[-1] if runs else (place, -BARS, 0)
        if place - last > _MAX_GAP:
            runs.append((place, place, count))
        else:
            runs[-1] = (first, place, total + count)
    return runs


def _place_in_rows(marks: Iterable[Mark]) -> list[Mark]:
    """Place marks in the rows in which they do not meet others. Without such a row, a mark has no label."""
    ends, placed = [0.0] * _LABEL_ROWS, list[Mark]()
    for mark in sorted(marks, key=lambda mark: mark.left):
        is_late = mark.size < LABEL_WIDTH and mark.left + mark.size + LABEL_WIDTH > 100
        begin = mark.left - LABEL_WIDTH if is_late else mark.left
        row = next((row for row, end in enumerate(ends) if end <= begin), None)
        if row is None:
            placed.append(mark._replace(row=_LABEL_ROWS - 1, label=""))
        else:
            ends[row] = mark.left + mark.size + LABEL_WIDTH * (mark.size < LABEL_WIDTH and not is_late)
            placed.append(mark._replace(row=row, is_late=is_late))
    return placed
