"""The whole REST surface in memory, on a file and on two nodes: each response equals that of a model."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator.core.settings import Settings
from engines.redis_server import RedisServer
from support.service import live_server
from surface.comparison import run_machine
from surface.machine import SurfaceMachine

EXAMPLES = 12
PART = 2
"""With 6 examples of 40 calls, `make test` finds each of 16 errors that were planted."""
STEPS = 40


@pytest.mark.hypothesis
@pytest.mark.parametrize("data", ["memory", pytest.param("file", marks=pytest.mark.long)], indirect=True)
def test_every_response_to_a_random_series_of_calls_equals_the_models(data: str) -> None:
    with live_server(Settings(data=data)) as node:
        run_machine(lambda: SurfaceMachine([node]), EXAMPLES, STEPS, part=PART)


@pytest.mark.long
@pytest.mark.hypothesis
def test_two_nodes_respond_as_one(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server, ExitStack() as stack:
        nodes = [stack.enter_context(live_server(Settings(data=server.url()))) for _ in range(2)]
        run_machine(lambda: SurfaceMachine(nodes), EXAMPLES, STEPS, part=PART)
