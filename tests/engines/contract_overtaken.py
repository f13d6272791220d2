"""The contract of calls that take several operations: what else happens between these loses no acknowledged write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.callers import Caller, Role
from emulator.changes import Changes, Commits
from emulator.clock import Clock
from emulator.config.settings import Settings
from emulator.engines.base import Key
from emulator.engines.engine import Engine
from emulator.features.identity.directory import Directory
from emulator.features.stores.rules import CHANNEL_STATE
from emulator.features.stores.service import Stores
from emulator.features.votes.definitions import PollConfig
from emulator.features.votes.service import Polls
from emulator.hints import NO_HINTS
from emulator.limits.id_quota import IdQuota
from emulator.parity.lapses import Lapses
from engines.contract_draws import Overtaken

WRITERS = {
    "with an opaque id": Caller("client", Role.VIEWER, "7", "5", "Uopaque"),
    "with a shared id only": Caller("client", Role.VIEWER, "7", "5", "U5", is_opaque_id_derived=True),
}
BROADCASTER = Caller("client", Role.BROADCASTER, "7", "7", "U7")
POLL = PollConfig(prompt="Lunch?", options=["yes", "no"])


def stores(engine: Engine, documents: Any) -> Stores:
    clock = Clock()
    directory = Directory(engine.documents, clock)
    return Stores(documents, clock, Settings(), directory, Commits(Changes(clock.now)), Lapses({}))


def polls(engine: Engine, documents: Any, ballots: Any = None) -> Polls:
    """Return the polls of another node. `documents` are those of its channel state."""
    clock = Clock()
    return Polls(
        ballots or engine.ballots,
        clock,
        IdQuota(engine.documents, clock, 1_000),
        stores(engine, documents),
        Directory(engine.documents, clock),
        None,  # type: ignore[arg-type]  # no test here moves the end of a poll
        Commits(Changes(clock.now)),
        NO_HINTS,
    )


async def announced(engine: Engine) -> list[str]:
    return list(json.loads(await stores(engine, engine.documents).read(CHANNEL_STATE, BROADCASTER, "7")))


class OvertakenContract:
    @pytest.mark.parametrize("caller", WRITERS.values(), ids=WRITERS)
    async def test_a_write_that_a_reset_overtakes_records_its_user(self, engine: Engine, caller: Caller) -> None:
        directory = Directory(engine.documents, Clock())
        _, recording = await directory.identify(caller, writes=True)
        await engine.reset()
        directory.forget()
        assert recording is not None
        await recording

        assert ["5"] == await directory.page("client", after="", limit=10)

    async def test_a_poll_created_while_an_earlier_one_is_deleted_is_announced(self, engine: Engine) -> None:
        one = polls(engine, engine.documents)

        async def create() -> None:
            await one.create(BROADCASTER, "7", "lunch", POLL)

        await create()
        await polls(engine, Overtaken(engine.documents, "update", create)).clear(BROADCASTER, "7", "lunch")

        assert ["lunch"] == await announced(engine)
        await one.clear(BROADCASTER, "7", "lunch")
        assert [] == await announced(engine)

    @pytest.mark.parametrize("operation", ["definition", "define"])
    async def test_a_poll_deleted_while_it_is_created_is_announced_only_if_it_exists(
        self, engine: Engine, operation: str
    ) -> None:
        async def clear() -> None:
            await polls(engine, engine.documents).clear(BROADCASTER, "7", "lunch")

        node = polls(engine, engine.documents, Overtaken(engine.ballots, operation, clear))
        await polls(engine, engine.documents).create(BROADCASTER, "7", "lunch", POLL)
        await node.create(BROADCASTER, "7", "lunch", POLL)

        exists = await engine.ballots.definition(Key("poll", "client", "lunch", "7"), now=Clock().now()) is not None
        assert ["lunch"] * exists == await announced(engine)
