"""What the pytest plugin adds to the report of a failed test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.plugin_runs import run_pytest

pytestmark = pytest.mark.slow


def test_a_failed_test_shows_the_log_lines_of_its_namespace_only(tmp_path: Path):
    test = """
        def test_passes(extcli): extcli.viewer().vote("unseen", 1)
        def test_fails(extcli):
            extcli.viewer().vote("boss", 1)
            assert False
    """
    run = run_pytest(tmp_path, files={"test": test})
    shown = run.output.partition("- extcli log of test_fails-")[2]

    assert "v1/e/vote: 200 in" in shown
    assert "_ns/test_passes" not in run.output


def test_a_failed_test_shows_the_requests_that_were_refused(tmp_path: Path):
    test = """
        def test_fails(extcli):
            extcli.viewer("7").request("GET", "vote_logs")
    """
    run = run_pytest(tmp_path, files={"test": test})
    shown = run.output.partition("- extcli refused requests of test_fails-")[2]

    assert re.search(r"403 GET /v1/e/vote_logs +viewer:7@1001 .*the role viewer may not do this; allowed", shown)


def test_a_failed_test_shows_the_fault_that_prevented_a_response(tmp_path: Path):
    test = """
        def test_fails(extcli):
            extcli.faults.add("POST /v1/e/vote", drop=True)
            extcli.viewer("7").vote("boss", 1)
    """
    run = run_pytest(tmp_path, files={"test": test})
    shown = run.output.partition("- extcli refused requests of test_fails-")[2]

    assert "fault f1 gave no response; remove it with `extcli fault rm f1`" in shown
