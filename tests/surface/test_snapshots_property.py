"""Snapshots of services with generated data of all features: equal bytes after loading, and equal responses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from emulator.core.config.settings import Settings
from engines.redis_server import RedisServer
from support.examples import examples
from support.service import Client, live_server
from surface.machine import SurfaceMachine

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("SURFACE_EXAMPLES", "0"))
STEPS = int(os.environ.get("SURFACE_STEPS", "25"))
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
        with Client(base_url=self.nodes[0].url) as client:
            client.put(PATH, content=snapshot).raise_for_status()


class SnapshotContract:
    """A subclass provides the engine's URL in the fixture `data`."""

    @pytest.fixture
    def data(self) -> str:
        raise NotImplementedError

    @pytest.mark.hypothesis
    def test_a_loaded_service_saves_the_same_bytes_and_gives_the_same_responses(self, data: str) -> None:
        chosen = settings(
            max_examples=EXAMPLES or examples(6),
            stateful_step_count=STEPS,
            derandomize=not EXAMPLES,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        with live_server(Settings(data=data)) as node:
            run_state_machine_as_test(lambda: SnapshotMachine([node]), settings=chosen)


class TestInMemory(SnapshotContract):
    @pytest.fixture
    def data(self) -> str:
        return "sqlite://"


@pytest.mark.long
class TestInAFile(SnapshotContract):
    @pytest.fixture
    def data(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/snapshots.db"


@pytest.mark.long
class TestOnRedis(SnapshotContract):
    @pytest.fixture
    def data(self, tmp_path: Path) -> Iterator[str]:
        with RedisServer(tmp_path) as server:
            yield server.url()
