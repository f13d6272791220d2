"""Housekeeping never changes a response (operations.md; engines/base.py)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from emulator.callers import Caller, Role
from emulator.clock import DAY, HOUR
from emulator.errors import BadRequest, NotFound
from emulator.features.votes.definitions import PollConfig
from support.service import CLIENT_ID, LiveServer, live_server

pytestmark = pytest.mark.slow

STEPS = 150


@pytest.fixture
def live() -> Iterator[LiveServer]:
    """A new service, whose own housekeeping, once a minute, does not run during the test."""
    with live_server() as live:
        yield live


async def _run_calls(live: LiveServer, random: Random, *, swept: bool) -> tuple[list[object], list[object]]:
    """The responses to a random series of calls, and everything that expired."""
    service = live.service
    answers: list[object] = []
    expired: list[object] = []
    for _ in range(STEPS):
        service.clock.advance(random.choice((0, 1, HOUR, 7 * HOUR, DAY, 4 * DAY)))
        channel = random.choice(("777", "888", None))
        name = random.choice(("a", "global-b"))
        user = random.choice("12345")
        caller = Caller(CLIENT_ID, Role.BACKEND, channel, user, f"U{user}")
        answers.append(await _call(live, caller, channel, name, random))
        if swept:
            expired += await service.engine.purge(now=service.clock.now())
    expired += await service.engine.purge(now=service.clock.now())
    return answers, sorted((each.at, each.key) for each in expired if each.key.kind != "accumulate")


async def _call(live: LiveServer, caller: Caller, channel: str | None, name: str, random: Random) -> object:
    polls, rankings, buffers = live.service.polls, live.service.rankings, live.service.buffers
    number = random.randrange(100)
    try:
        match random.randrange(11):
            case 0 | 1 | 2:
                return await polls.cast(caller, channel, name, number, number % 4)
            case 3:
                return await polls.define(caller, channel, name, PollConfig(total_votes_per_user=1 + number % 3))
            case 4:
                return await polls.read(caller, channel, name)
            case 5:
                return [page async for page in await polls.log(caller, channel, name, since=0, limit=None)]
            case 6:
                return await polls.definition(caller, channel, name)
            case 7:
                return await rankings.submit(caller, channel, name, str(number % 3))
            case 8:
                return await rankings.read(caller, channel, name)
            case 9:
                return await buffers.add(caller, channel, name, number)
            case _:
                latest, pages = await buffers.read(caller, channel, name, 0)
                return latest, [page async for page in pages]
    except (BadRequest, NotFound) as refused:
        return refused.reason


@pytest.mark.parametrize("seed", range(12))
def test_responses_and_expiries_do_not_depend_on_housekeeping(live, seed):
    runs = []
    for swept in (True, False):
        live.reset()
        live.set(2_000_000_000_000)
        runs.append(live.run(_run_calls(live, Random(seed), swept=swept)))

    (answers, expired), (unswept_answers, unswept_expired) = runs
    assert answers == unswept_answers
    assert expired == unswept_expired
