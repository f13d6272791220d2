"""The calls of the surface test in a strict sandbox: production would respond to each in the same way."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import httpx
import pytest

from emulator.config.environment import STRICT, AnonymousLimits
from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.parity_twin import VERDICT
from support.service import CLIENT_ID, OTHER_ID, SECRET, LiveServer, live_server
from surface.calls import Call, Caller
from surface.contract import run_surface
from surface.machine import SurfaceMachine

UNLIMITED = replace(STRICT, caller_rate=0, anonymous=AnonymousLimits())
"""The clock stands still between moves, so every rate would be used up."""


class StrictMachine(SurfaceMachine):
    """Makes the calls. The model has the lifetimes of the sandbox, so the responses are not compared with it."""

    def __init__(self, strict: LiveServer, seen: Counter[int]) -> None:
        super().__init__([strict])
        self.seen = seen
        """How often each status came, but to a game, whose token counts only once its PIN is validated."""

    def call(self, caller: Caller, method: str, path: str, query: dict[str, str] | None = None, body: Any = ...) -> Any:
        response = self.send(caller, method, path, query or {}, body)
        self.model.answer(Call(caller, method, path, query or {}, None if body is ... else body))
        assert VERDICT not in response.headers, f"{caller} {method} {path} {query} {body}"
        if not caller.token:
            self.seen[response.status_code] += 1
        return response.json()


@pytest.mark.slow
@pytest.mark.hypothesis
def test_no_call_of_the_surface_test_has_a_verdict_in_a_strict_sandbox():
    seen: Counter[int] = Counter()
    extensions = {id: Extension(id, (SECRET,)) for id in (CLIENT_ID, OTHER_ID)}
    with live_server(Settings(UNLIMITED, extensions=extensions)) as strict:
        run_surface(lambda: StrictMachine(strict, seen), 4)
        rules = httpx.get(f"{strict.url}/_emulator/parity").json()["rules"]

    assert [] == rules
    assert seen[401] == 0 < seen[200]
