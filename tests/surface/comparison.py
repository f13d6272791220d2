"""Tells a service and its model the same, and holds their answers against each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import httpx
import jwt
from hypothesis.stateful import RuleBasedStateMachine, invariant

from support.service import SECRET, Client, LiveServer
from surface.callers import OURS, THEIRS, WITNESSES
from surface.calls import Call, Who
from surface.model import Surface, differences
from surface.stores import STORES

NOON = 2_000_000_000_000


def credential(who: Who) -> str:
    """A self-signed token, or the one that came with a PIN."""
    said = {"role": who.role, "user_id": who.user, "channel_id": who.channel, "opaque_user_id": who.opaque}
    claims = {name: value for name, value in said.items() if value is not None}
    return f"{who.client_id} {who.token or jwt.encode(claims, SECRET)}"


CREDENTIALS = {who: credential(who) for who in (*OURS, *THEIRS)}


POLL_IDS, BUFFER_IDS = ({"id": ""}, {"id": "quiz"}, {"id": "global-x"}), ({"id": ""}, {"id": "global-x"})
READINGS = (
    *((path, query) for path in ("vote", "vote_logs", "vote_config") for query in POLL_IDS),
    *((path, query) for path in ("rank", "accumulate") for query in BUFFER_IDS),
    *((store, {}) for store in STORES),
    *((path, {}) for path in ("all_state", "all_config", "codes", "codes/eligibility", "codes/redeemed")),
    *((path, {"id": name}) for path in ("json_store",) for name in ("", "globalwarming")),
)


class Asking(RuleBasedStateMachine):
    """One service and its model, which are told the same. Of several nodes each is asked in turn."""

    def __init__(self, nodes: Sequence[LiveServer]) -> None:
        super().__init__()
        self.nodes = nodes
        self.clients = [Client(base_url=f"{node.url}/v1/e/") for node in nodes]
        self.in_turn = cycle(self.clients)
        self.touched: tuple[str, dict[str, str]] | None = None
        self.turn = 0
        self.agrees = True
        self.begin()

    def begin(self) -> None:
        """As if just started, with a clock that stands."""
        self.nodes[0].reset()
        self.set(NOON)
        self.model = Surface(NOON)

    def ask(self, who: Who, method: str, path: str, query: dict[str, str] | None = None, body: Any = ...) -> Any:
        """Make a call of both, hold the answers against each other, and return the service's."""
        response = self.send(who, method, path, query or {}, body)
        expected = self.model.answer(Call(who, method, path, query or {}, None if body is ... else body))
        said = response.json()
        got = response.status_code, said if response.status_code == 200 else said["reason"]
        wrong = [*differences(list(expected), list(got))]
        self.agrees = not wrong
        assert self.agrees, f"{who} {method} {path} {query} {body}: {wrong}"
        return said

    def send(self, who: Who, method: str, path: str, query: dict[str, str], body: Any) -> httpx.Response:
        header = CREDENTIALS.get(who) or credential(who)
        content = None if body is ... else json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        client = next(self.in_turn)
        return client.request(method, path, params=query, content=content, headers={"Authorization": header})

    @invariant()
    def what_was_touched_is_the_same_to_others(self) -> None:
        """Two of the witnesses look at it, others each time."""
        if self.touched is None:
            return
        (path, query), self.touched = self.touched, None
        for _ in range(2):
            self.turn += 1
            self.ask(WITNESSES[self.turn % len(WITNESSES)], "GET", path, query)

    def teardown(self) -> None:
        """Everything is looked at one millisecond before something ends, and at that end."""
        ends = self.model.ends() if self.agrees else []
        if ends:
            end = ends[self.turn % len(ends)]
            for instant in (end - 1, end):
                self.move(instant)
                for index, (path, query) in enumerate(READINGS):
                    self.ask(WITNESSES[(index + self.turn) % len(WITNESSES)], "GET", path, query)
        for client in self.clients:
            client.close()

    def move(self, now: int) -> None:
        """Set the clock of both."""
        self.set(now)
        self.model.move(now)

    def set(self, now: int) -> None:
        """Each node has a clock of its own."""
        for node in self.nodes:
            node.set(now)
