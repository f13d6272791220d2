"""The contract of an engine for the whole REST surface: every response equals the model's."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from emulator.core.config.settings import Settings
from support.examples import examples
from support.service import live_server
from surface.machine import SurfaceMachine

EXAMPLES = int(os.environ.get("SURFACE_EXAMPLES", "0"))
STEPS = int(os.environ.get("SURFACE_STEPS", "40"))


def run_surface(machine: Callable[[], SurfaceMachine], count: int) -> None:
    """Run this many random series of calls; half of them in `make test`."""
    chosen = settings(
        max_examples=EXAMPLES or examples(count, part=2),
        stateful_step_count=STEPS,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    run_state_machine_as_test(machine, settings=chosen)  # type: ignore[arg-type]


class SurfaceContract:
    """Compares a service with the model. A subclass provides the engine's URL in the fixture `data`."""

    size = 1
    """The number of nodes of the service."""

    @pytest.fixture
    def data(self) -> str:
        raise NotImplementedError

    @pytest.mark.hypothesis
    def test_every_response_to_a_random_series_of_calls_equals_the_models(self, data: str) -> None:
        with ExitStack() as stack:
            nodes = [stack.enter_context(live_server(Settings(data=data))) for _ in range(self.size)]
            run_surface(lambda: SurfaceMachine(nodes), 25)
