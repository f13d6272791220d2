"""What an engine has to do for the whole REST surface: answer as the model does, whatever is called."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from emulator.config.settings import Settings
from support.service import live_server
from surface.machine import SurfaceMachine

EXAMPLES = int(os.environ.get("SURFACE_EXAMPLES", "0"))
STEPS = int(os.environ.get("SURFACE_STEPS", "40"))


class SurfaceContract:
    """A subclass whose fixture `data` answers the URL of an engine holds the service on it against the model."""

    size = 1
    """How many nodes the service has."""

    @pytest.fixture
    def data(self) -> str:
        raise NotImplementedError

    def test_every_answer_is_that_of_the_specification_after_any_series_of_calls(self, data: str) -> None:
        chosen = settings(
            max_examples=EXAMPLES or 25,
            stateful_step_count=STEPS,
            derandomize=not EXAMPLES,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        with ExitStack() as stack:
            nodes = [stack.enter_context(live_server(Settings(data=data))) for _ in range(self.size)]
            run_state_machine_as_test(lambda: SurfaceMachine(nodes), settings=chosen)
