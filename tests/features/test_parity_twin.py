"""A sandbox and a service in production answer the same random requests: each verdict says what production did."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from emulator.contract.parity import RULES, outcome_of, rule_of
from emulator.core.parity import (
    CALLER_RATE,
    CLAIMS,
    DIFFER,
    ENDPOINT,
    EXP,
    FREER_RATE,
    PIN_CHANNEL,
    REFUSE,
    REGISTRATION,
    SIGNATURE,
    STAGE,
)
from support.parity_twin import DAY, HOUR, SECOND, VERDICT, Sent, Twins, comparable, twins
from support.socket_client import SocketClient

REQUESTS = int(os.environ.get("PARITY_REQUESTS", "400"))
"""`PARITY_REQUESTS=5000` finds what is rare."""
SEED = int(os.environ.get("PARITY_SEED", "0"))
MOVES = (SECOND, SECOND, SECOND, SECOND, 10 * SECOND, 60 * SECOND, 2 * HOUR, DAY + HOUR, 31 * DAY)


def run(both: Twins, count: int) -> Counter[str]:
    """Send random requests, alone and in bursts, and move the clock between; return how often each verdict came."""
    seen: Counter[str] = Counter()
    number = 0
    while number < count:
        chosen = both.random.random()
        if chosen < 0.05:
            both.move(both.random.choice(MOVES))
            continue
        sent = both.request()
        for _ in range(both.random.randint(5, 30) if chosen > 0.93 else 1):
            seen[check(sent, *both.send(sent))] += 1
            number += 1
    return seen


def check(sent: Sent, sandbox: httpx.Response, production: httpx.Response) -> str:
    """Compare a verdict with what production did, and return it."""
    verdict = sandbox.headers.get(VERDICT, "")
    told = f"{sent.kind}: {sent.method} {sent.path} {sent.body}\n  {verdict!r}, {sandbox.text} / {production.text}"
    assert VERDICT not in production.headers, told
    if not verdict:
        assert sandbox.status_code == production.status_code, told
        if sandbox.is_success and "/_emulator/" not in sent.path:
            assert comparable(sandbox) == comparable(production), told
    elif outcome_of(verdict) == REFUSE:
        assert production.status_code == RULES[rule_of(verdict)].status != sandbox.status_code, told
    else:
        assert outcome_of(verdict) == DIFFER, told  # never unknown, because the secrets are known
    return verdict


@pytest.mark.slow
def test_each_verdict_is_what_a_production_twin_does():
    with twins(SEED) as both:
        seen = run(both, REQUESTS)

    assert {"", SIGNATURE, STAGE, EXP, CLAIMS, ENDPOINT, REGISTRATION} <= set(seen)


@pytest.mark.slow
def test_rates_of_client_ids_count_what_a_production_twin_counts():
    with twins(SEED, client_rate=6) as both:
        seen = run(both, REQUESTS // 2)

    assert FREER_RATE in seen


FRAMES = (
    *[("get", "state", {"state_id": "channel"})] * 3,
    ("set", "state", {"state_id": "channel", "state": {"a": 1}}),
    ("set", "state", {"state_id": "extension", "state": {"a": 1}}),
    ("subscribe", "authentication", {}),
    ("subscribe", "state", {"topic_id": "channel"}),
    ("subscribe", "", {}),
    ("get", "transaction", {"sku": "hat"}),
    ("frobnicate", "", {}),
)


def check_frame(both: Twins, sockets: tuple[SocketClient, SocketClient], action: str, target: str, data: Any) -> str:
    """Send a message to both, compare the verdict on it with what production did, and return it."""
    replies = [game.request(action, target, each) for game, each in zip(sockets, data, strict=True)]
    sandbox, production = ((each["errors"][0]["status"] if "errors" in each else 200) for each in replies)
    verdict = both.verdict_on_frame()
    told = f"{action} {target} {data}\n  {verdict!r}, {replies}"
    if verdict:
        # Where the token or PIN was refused, later messages come from a connection without rights.
        expected = (
            {RULES[rule_of(verdict)].status} if action == "authenticate" else {RULES[rule_of(verdict)].status, 401}
        )
        assert outcome_of(verdict) == REFUSE, told
        assert production in expected, told
        assert production != sandbox, told
    else:
        assert production == sandbox, told
    return verdict


def converse(both: Twins, count: int) -> Counter[str]:
    """Open this many sockets of games, send random messages and move the clock. Return how often each verdict came."""
    seen: Counter[str] = Counter()
    for _ in range(count):
        sockets = both.sockets()
        seen[check_frame(both, sockets, "authenticate", "", both.credentials())] += 1
        for _ in range(both.random.choice([3, 3, 3, 15])):
            action, target, data = both.random.choice(FRAMES)
            seen[check_frame(both, sockets, action, target, [data, data])] += 1
        for game in sockets:
            game.socket.close()
        if both.random.random() < 0.2:
            both.move(both.random.choice(MOVES[:6]))
    return seen


@pytest.mark.slow
def test_each_verdict_on_a_message_is_what_a_production_twin_does():
    with twins(SEED) as both:
        seen = converse(both, REQUESTS // 8)

    assert {"", SIGNATURE, STAGE, EXP, PIN_CHANNEL, CALLER_RATE} <= set(seen)


@pytest.fixture(scope="module")
def both() -> Iterator[Twins]:
    with twins(SEED) as both:
        yield both


@pytest.mark.parametrize("path", ["/", "/_emulator", "/_emulator/clock"])
@pytest.mark.parametrize("method", ["POST", "PUT", "HEAD", "DELETE"])
def test_a_method_that_a_sandbox_page_lacks_is_not_found_in_production(both: Twins, method: str, path: str):
    answers = [httpx.request(method, f"{live.url}{path}") for live in (both.sandbox, both.production)]

    check(Sent(method, path, "", "", "", {}, "a page"), *answers)
    assert 404 == answers[1].status_code
