"""The contract of calls that take several operations: what else happens between these loses no acknowledged write."""

from __future__ import annotations

import pytest

from emulator.callers import Caller, Role
from emulator.clock import Clock
from emulator.engines.engine import Engine
from emulator.features.identity.directory import Directory

WRITERS = {
    "with an opaque id": Caller("client", Role.VIEWER, "7", "5", "Uopaque"),
    "with a shared id only": Caller("client", Role.VIEWER, "7", "5", "U5", is_opaque_id_derived=True),
}


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
