"""A model of the REST surface, written from the specification and the rulings with dicts and lists only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from surface.ballots import Accumulation, Polls, Rankings
from surface.calls import DAY, Call, Clock, Refused
from surface.codes import Codes
from surface.games import Games
from surface.people import People
from surface.pins import Pins
from surface.stores import STORES, Stores
from surface.trivia import Trivia

Row = tuple[str, str, str, int | None, int]
"""Extension, channel, id, count (of what has one) and expiry."""


@dataclass
class Surface:
    """The model of one service."""

    now: int
    clock: Clock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = clock = Clock(self.now)
        self.people, self.pins = People(clock), Pins(clock)
        self.polls, self.rankings, self.accumulation = Polls(clock, self.people), Rankings(clock), Accumulation(clock)
        self.stores, self.codes = Stores(clock, self.people), Codes(clock, self.polls, self.people)
        self.games, self.trivia = Games(clock, self.people), Trivia(clock)
        self._parts = (
            self.polls, self.rankings, self.accumulation, self.stores, self.codes, self.pins, self.people,
            self.games, self.trivia,
        )  # fmt: skip

    def answer(self, call: Call) -> tuple[int, object]:
        """The status, with the body or, for an error, the reason."""
        verb = "store" if call.path in STORES else call.path.replace("/", "_")
        name = f"{call.method.lower()}_{verb}"
        token = call.caller
        try:
            token = self.pins.bearer(call.caller)
            caller = self.people.known(token)
            part = next(each for each in self._parts if hasattr(each, name))
            answer = getattr(part, name)(Call(caller, call.method, call.path, call.query, deep_copy(call.body)))
        except Refused as refusal:
            if call.method != "GET" and not refusal.is_early:
                self.people.wrote(token)
            return refusal.status, refusal.reason
        if call.method != "GET":
            self.people.wrote(token)
        return 201 if call.path == "bits/transactions" else 200, answer

    def move(self, now: int) -> None:
        """Remove expired items before and after the move, so that setting the clock back revives none (decision 4)."""
        for instant in (self.clock.now, now):
            self.clock.now = instant
            for part in self._parts:
                part.expire()

    def contents(self, kind: str) -> list[Row]:
        """The stored records of a kind, sorted."""
        rows: list[Row] = []
        match kind:
            case "polls":
                rows = [(*key, sum(vote.times for vote in poll.votes), poll.expires_at)
                        for key, poll in self.polls.polls.items.items()]  # fmt: skip
            case "rankings":
                rows = [(*key, len(each.answers), each.expires_at) for key, each in self.rankings.buffers.items.items()]
            case "buffers":
                ends: dict[tuple[str, str, str], list[int]] = {}
                for client_id, name, entry in self.accumulation.entries:
                    ends.setdefault((client_id, entry["channel_id"], name), []).append(entry["observed"] + DAY)
                rows = [(*key, len(each), max(each)) for key, each in ends.items()]
            case "stores" | "json_stores":
                for (store, *names), (_, end) in self.stores.records.items():
                    if kind == "stores" and store in STORES:
                        parts = dict(zip(STORES[store][2].split(), names, strict=True))
                        rows.append((parts.get("extension", ""), parts.get("channel", ""), store, None, end))
                    elif kind == "json_stores" and store not in STORES:
                        client_id, name, *channel = names
                        rows.append((client_id, "".join(channel), name, None, end))
            case "codes":
                rows = [(each.client_id, "", str(each.index), len(each.handed) - each.earlier, each.expires_at)
                        for each in self.codes.sets if each.is_active]  # fmt: skip
            case "trivia":
                rows = [(client_id, "", "trivia", None, end) for client_id, end in self.trivia.ends.items()]
            case "purchases":
                rows = [(each.client_id, each.channel, each.shown["id"], None, each.expires_at)
                        for each in self.games.purchases if not each.is_settled]  # fmt: skip
        return sorted(rows, key=str)

    def expiries(self) -> list[int]:
        """The instants in the future at which an item expires or a poll opens or closes."""
        return sorted({end for part in self._parts for end in part.expiries() if end > self.clock.now})


def deep_copy(body: Any) -> Any:
    """A deep copy."""
    return json.loads(json.dumps(body))


def differences(expected: object, got: object, where: str = "") -> Iterator[str]:
    """The differences between two JSON values. `true` is not 1; floats are compared with a tolerance."""
    if isinstance(expected, dict) and isinstance(got, dict) and expected.keys() == got.keys():
        for name in expected:
            yield from differences(expected[name], got[name], f"{where}/{name}")
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, value in enumerate(expected):
            yield from differences(value, got[index], f"{where}/{index}")
    elif isinstance(expected, float) and isinstance(got, float | int) and not isinstance(got, bool):
        if abs(expected - got) > 1e-9:
            yield f"{where}: {got}, expected {expected}"
    elif expected is not ... and (type(expected) is not type(got) or expected != got):
        yield f"{where}: {got!r}, expected {expected!r}"
