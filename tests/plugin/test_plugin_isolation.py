"""Many tests in parallel see only their own data, and leave no namespace behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.plugin_runs import run_pytest
from support.service import LiveServer

pytestmark = [pytest.mark.long, pytest.mark.slow]

TESTS = """
    import pytest

    @pytest.mark.parametrize("number", range(60))
    def test_sees_only_its_own_vote(extcli, number):
        viewer = extcli.viewer("U%d" % number)
        assert [1, 1] == [viewer.vote("boss", number % 3)["count"] for _ in range(2)]
"""


@pytest.mark.parametrize("shared", [True, False], ids=["one service", "a service for each worker"])
def test_parallel_tests_see_only_their_own_data(live: LiveServer, tmp_path: Path, shared: bool):
    run = run_pytest(tmp_path, "-n", "3", *(["--extcli-url", live.url] if shared else []), files={"test": TESTS})

    assert (0, True) == (run.exit_code, "60 passed" in run.output), run.output
    assert [] == [name for name in live._http.get("/_ns").json()["namespaces"] if name.startswith("test_")]
