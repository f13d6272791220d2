"""Snapshots of services with generated data of all features: equal bytes after loading, and equal responses."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from emulator.core.settings import Settings
from support.service import Client, live_server
from surface.comparison import run_machine
from surface.machine import SurfaceMachine

pytestmark = pytest.mark.slow

PATH = "/_emulator/snapshot"


class SnapshotMachine(SurfaceMachine):
    """Loads a snapshot with keys now and then. Every later response equals the model's, which never loads one."""

    @rule(resets=st.booleans())
    def save_and_load(self, resets: bool) -> None:
        saved = self.save(keys="true")
        if resets:
            self.nodes[0].reset()
        self.load(saved)
        assert saved == self.save(keys="true")

    def teardown(self) -> None:
        """Read everything from a loaded service. Then load once more without keys, which ends the links."""
        self.save_and_load(True)
        try:
            super().teardown()
        finally:
            saved = self.save()
            self.load(saved)
            assert saved == self.save()

    def save(self, **query: str) -> bytes:
        with Client(base_url=self.nodes[0].url) as client:
            return client.get(PATH, params=query).raise_for_status().content

    def load(self, snapshot: bytes) -> None:
        self.close_games()
        with Client(base_url=self.nodes[0].url) as client:
            client.put(PATH, content=snapshot).raise_for_status()


@pytest.mark.hypothesis
def test_a_loaded_service_saves_the_same_bytes_and_gives_the_same_responses(data: str) -> None:
    with live_server(Settings(data=data)) as node:
        run_machine(lambda: SnapshotMachine([node]), 6, 25)
