"""The contract of calls that take several operations: what else happens between these loses no acknowledged write."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from emulator.core.callers import Caller, Role
from emulator.core.changes import Changes
from emulator.core.clock import Clock
from emulator.core.errors import EngineError, Unavailable
from emulator.core.keys import Key
from emulator.core.settings import Settings
from emulator.features.codes import uploads
from emulator.features.codes.grants import GrantBody
from emulator.features.codes.uploads import NamesBody
from emulator.features.directory import Directory
from emulator.features.id_quota import IdQuota
from emulator.features.stores.rules import CHANNEL_STATE
from emulator.features.stores.service import Stores
from emulator.features.votes.rules import PollConfig
from emulator.features.votes.service import Polls
from emulator.storage.engine import Engine
from emulator.storage.records import Record
from engines.contract_draws import BACKEND, VIEWERS, Overtaken, code_sets, put

WRITERS = {
    "with an opaque id": Caller("client", Role.VIEWER, "7", "5", "Uopaque"),
    "with a shared id only": Caller("client", Role.VIEWER, "7", "5", "U5", is_opaque_id_derived=True),
}
BROADCASTER = Caller("client", Role.BROADCASTER, "7", "7", "U7")
POLL = PollConfig(prompt="Lunch?", options=["yes", "no"])


def stores(engine: Engine, documents: Any) -> Stores:
    clock = Clock()
    directory = Directory(engine.documents, clock)
    return Stores(documents, clock, Settings(), directory, Changes(clock.now))


def polls(engine: Engine, documents: Any, ballots: Any = None) -> Polls:
    """Return the polls of another node. `documents` are its channel states."""
    clock = Clock()
    return Polls(
        ballots or engine.ballots,
        clock,
        IdQuota(engine.documents, clock, 1_000),
        stores(engine, documents),
        Directory(engine.documents, clock),
        None,  # type: ignore[arg-type]  # no test here moves the end of a poll
        Changes(clock.now),
    )


async def announced(engine: Engine) -> list[str]:
    state = await stores(engine, engine.documents).read(CHANNEL_STATE, BROADCASTER, "7")
    return list(json.loads(bytes(state)))


class OvertakenContract:
    @pytest.mark.parametrize("caller", WRITERS.values(), ids=WRITERS)
    async def test_a_write_that_a_reset_overtakes_records_its_user(self, engine: Engine, caller: Caller) -> None:
        directory = Directory(engine.documents, Clock())
        _, recording = await directory.identify(caller, writes=True)
        await engine.reset()
        directory.forget()
        assert recording is not None
        await recording

        assert ["5"] == await directory.shared_ids_page("client", after="", limit=10)

    @pytest.mark.parametrize("caller", WRITERS.values(), ids=WRITERS)
    async def test_a_request_goes_on_if_its_users_ids_cannot_be_recorded(self, engine: Engine, caller: Caller) -> None:
        async def fail() -> None:
            raise EngineError("locked")

        directory = Directory(Overtaken(engine.documents, "keep", fail), Clock())
        found, recording = await directory.identify(caller, writes=True)

        assert caller == found
        assert recording is not None
        with pytest.raises(EngineError, match="locked"):
            await recording

    @pytest.mark.parametrize("batches_before", [1, 2])
    async def test_an_upload_that_a_reset_overtakes_is_refused_whole(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch, batches_before: int
    ) -> None:
        monkeypatch.setattr(uploads, "_MIN_CODES_PER_WRITE", 1)
        sets = code_sets(engine)

        async def put_during_a_reset() -> None:
            async with sets.new_upload(BACKEND) as upload:
                for at in (0, 1):
                    await upload.add(0, at, [f"code {at}"])
                    if at + 1 == batches_before:
                        await engine.reset()
                await sets.define(upload, NamesBody(["hats"]), 1)

        with pytest.raises(Unavailable, match="during the upload, the service was reset"):
            await put_during_a_reset()

        assert [] == [page async for page in engine.dump(now=Clock().now()) if page]

    async def test_a_mark_that_a_load_overtakes_is_refused_whole(self, engine: Engine) -> None:
        sets, (viewer, _) = code_sets(engine), VIEWERS.values()
        await put(sets, "a")
        before = [page async for page in engine.dump(now=Clock().now())]

        async def saved() -> AsyncIterator[Sequence[Record]]:
            for page in before:
                yield page

        async def mark_during_a_load() -> None:
            async with sets.new_grant(BACKEND) as grant:
                await grant.add(["5"])
                await engine.load(saved(), replace=True)
                await grant.add(["6"])
                await grant.put_in_effect(GrantBody(prize_limits=[1], prizes=[0]))

        with pytest.raises(Unavailable, match="during the call, the service was reset"):
            await mark_during_a_load()

        assert [0] == await sets.eligibility(viewer)
        assert before == [page async for page in engine.dump(now=Clock().now())]

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
