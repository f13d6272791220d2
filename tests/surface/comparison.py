"""Makes each call to the service and to the model, and compares the responses."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import httpx
import jwt
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, run_state_machine_as_test

from support.examples import examples
from support.service import SECRET, Client, LiveServer
from support.socket_client import SocketClient
from surface.callers import FOLLOWED, OURS, THEIRS, WITNESSES
from surface.calls import Call, Caller
from surface.model import Surface, differences
from surface.stores import STORES

START = 2_000_000_000_000
EXPIRES = {"exp": 10**10}
"""Claims of all tokens: production takes none without an `exp`."""


def credential(caller: Caller) -> str:
    """A self-signed token, or the token issued with a PIN."""
    values = {
        "role": caller.role,
        "user_id": caller.user,
        "channel_id": caller.channel,
        "opaque_user_id": caller.opaque,
    }
    claims = {name: value for name, value in values.items() if value is not None} | EXPIRES
    return f"{caller.client_id} {caller.token or jwt.encode(claims, SECRET)}"


CREDENTIALS = {caller: credential(caller) for caller in (*OURS, *THEIRS)}


POLL_IDS, BUFFER_IDS = ({"id": ""}, {"id": "quiz"}, {"id": "global-x"}), ({"id": ""}, {"id": "global-x"})
READS = (
    *((path, query) for path in ("vote", "vote_logs", "vote_config") for query in POLL_IDS),
    *((path, query) for path in ("rank", "accumulate") for query in BUFFER_IDS),
    *((store, {}) for store in STORES),
    *((path, {}) for path in ("all_state", "all_config", "codes", "codes/eligibility", "codes/redeemed", "user_ids")),
    *((path, {}) for path in ("curated_poll", "curated_poll_leaderboard", "team_membership")),
    *((path, {"id": name}) for path in ("json_store",) for name in ("", "globalwarming")),
)


class ComparisonMachine(RuleBasedStateMachine):
    """A service and its model, which get the same calls. With several nodes, calls rotate between them."""

    def __init__(self, nodes: Sequence[LiveServer]) -> None:
        super().__init__()
        self.nodes = nodes
        self.clients = [Client(base_url=f"{node.url}/v1/e/") for node in nodes]
        self.rotation = cycle(self.clients)
        self.changed: tuple[str, dict[str, str]] | None = None
        self.counter = 0
        self.agrees = True
        self.games: dict[Caller, SocketClient] = {}
        self.start()

    def start(self) -> None:
        """Reset the service and the model, and stop the clock."""
        self.close_games()
        self.nodes[0].reset()
        self.set(START)
        self.model = Surface(START)

    def call(self, caller: Caller, method: str, path: str, query: dict[str, str] | None = None, body: Any = ...) -> Any:
        """Make a call to both, compare the responses, and return the service's response body."""
        response = self.send(caller, method, path, query or {}, body)
        expected = self.model.answer(Call(caller, method, path, query or {}, None if body is ... else body))
        answer = response.json()
        got = response.status_code, answer if response.is_success else answer["reason"]
        wrong = [*differences(list(expected), list(got))]
        self.agrees = not wrong
        assert self.agrees, f"{caller} {method} {path} {query} {body}: {wrong}"
        return answer

    def send(self, caller: Caller, method: str, path: str, query: dict[str, str], body: Any) -> httpx.Response:
        header = CREDENTIALS.get(caller) or credential(caller)
        content = None if body is ... else json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        client = next(self.rotation)
        return client.request(method, path, params=query, content=content, headers={"Authorization": header})

    def control(self, path: str, query: dict[str, str]) -> httpx.Response:
        """Make a call to the control API."""
        url = f"{self.nodes[0].url}/_emulator/{path}"
        return self.clients[0].get(url, params=query).raise_for_status()

    def game(self, caller: Caller) -> SocketClient:
        """A game of the caller's channel, which follows purchases and the datastream."""
        if caller not in self.games:
            node, (client_id, token) = self.nodes[-1], CREDENTIALS[caller].split()
            game = self.games[caller] = SocketClient(node, f"/0.2.0/{client_id}")
            game.data("authenticate", data={"client_id": client_id, "jwt": token})
            game.data("subscribe", "datastream", {"topic_id": ""})
            for target, sku in FOLLOWED[caller]:
                game.data("subscribe", target, {"sku": sku})
        return self.games[caller]

    def compare_updates(self) -> None:
        """Compare what the games received with what the model sent them, in order."""
        for caller in FOLLOWED:
            skus = {sku for _, sku in FOLLOWED[caller]}
            sent = self.model.games.sent.pop((caller.client_id, caller.own_channel or ""), [])
            for expected in sent:
                if "events" in expected or not skus.isdisjoint({"*", expected["sku"]}):
                    assert [] == [*differences(expected, self.game(caller).update()["data"])]
            assert self.game(caller).no_update()

    def close_games(self) -> None:
        """Close the connections of games."""
        for game in self.games.values():
            game.__exit__(None, None, None)
        self.games.clear()

    @invariant()
    def a_change_reads_the_same_to_others(self) -> None:
        """Read what the last rule changed as two of the witnesses, in rotation."""
        if self.changed is None:
            return
        (path, query), self.changed = self.changed, None
        for _ in range(2):
            self.counter += 1
            self.call(WITNESSES[self.counter % len(WITNESSES)], "GET", path, query)

    def teardown(self) -> None:
        """Read everything one millisecond before some expiry, and at that expiry."""
        expiries = self.model.expiries() if self.agrees else []
        if expiries:
            end = expiries[self.counter % len(expiries)]
            for instant in (end - 1, end):
                self.move(instant)
                for index, (path, query) in enumerate(READS):
                    self.call(WITNESSES[(index + self.counter) % len(WITNESSES)], "GET", path, query)
        self.close_games()
        for client in self.clients:
            client.close()

    def move(self, now: int) -> None:
        """Set the clock of the service and of the model."""
        self.set(now)
        self.model.move(now)

    def set(self, now: int) -> None:
        """Set the clock of every node."""
        for node in self.nodes:
            node.set(now)


def run_machine(machine: Callable[[], ComparisonMachine], count: int, steps: int, *, part: int = 4) -> None:
    """Run this many random series of calls, or a `part` of them in `make test`.

    The variables `SURFACE_EXAMPLES` and `SURFACE_STEPS` set other numbers.
    """
    examples_of_environment = int(os.environ.get("SURFACE_EXAMPLES", "0"))
    chosen = settings(
        max_examples=examples_of_environment or examples(count, part=part),
        stateful_step_count=int(os.environ.get("SURFACE_STEPS", steps)),
        derandomize=not examples_of_environment,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    run_state_machine_as_test(machine, settings=chosen)  # type: ignore[arg-type]
