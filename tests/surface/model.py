"""The REST surface as the specification and the rulings describe it: dicts and lists, no engine and no service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from surface.ballots import Accumulation, Polls, Rankings
from surface.calls import Call, Refused, Time
from surface.codes import Codes
from surface.pins import Pins
from surface.stores import STORES, Stores


@dataclass
class Surface:
    """All that one service holds."""

    now: int
    time: Time = field(init=False)

    def __post_init__(self) -> None:
        self.time = time = Time(self.now)
        self.polls, self.rankings, self.accumulation = Polls(time), Rankings(time), Accumulation(time)
        self.stores, self.pins = Stores(time), Pins(time)
        self.codes = Codes(time, self.polls)
        self._parts = (self.polls, self.rankings, self.accumulation, self.stores, self.codes, self.pins)

    def answer(self, call: Call) -> tuple[int, object]:
        """The status with the body or, of a refusal, its reason."""
        verb = "store" if call.path in STORES else call.path.replace("/", "_")
        name = f"{call.method.lower()}_{verb}"
        try:
            who = self.pins.bearer(call.who)
            part = next(each for each in self._parts if hasattr(each, name))
            return 200, getattr(part, name)(Call(who, call.method, call.path, call.query, copied(call.body)))
        except Refused as refusal:
            return refusal.status, refusal.reason

    def move(self, now: int) -> None:
        """What has ended goes before the clock moves and after; setting it back brings nothing back (decision 4)."""
        for instant in (self.time.now, now):
            self.time.now = instant
            for part in self._parts:
                part.end()

    def ends(self) -> list[int]:
        """The instants at which something comes to its end, or begins or closes."""
        return sorted({end for part in self._parts for end in part.ends() if end > self.time.now})


def copied(body: Any) -> Any:
    """The same JSON, shared with nobody."""
    return json.loads(json.dumps(body))


def differences(expected: object, got: object, where: str = "") -> Iterator[str]:
    """Where two JSON values differ; `true` is not 1, and floats may differ in their last digits."""
    if isinstance(expected, dict) and isinstance(got, dict) and expected.keys() == got.keys():
        for name in expected:
            yield from differences(expected[name], got[name], f"{where}/{name}")
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, value in enumerate(expected):
            yield from differences(value, got[index], f"{where}/{index}")
    elif isinstance(expected, float) and isinstance(got, float | int) and not isinstance(got, bool):
        if abs(expected - got) > 1e-9:
            yield f"{where}: {got} in place of {expected}"
    elif expected is not ... and (type(expected) is not type(got) or expected != got):
        yield f"{where}: {got!r} in place of {expected!r}"
