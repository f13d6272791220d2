"""What the plugin costs a run of pytest that does not use it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from support.plugin_runs import run_pytest

HEAVY = {"httpx", "httpcore", "litestar", "rich", "websockets", "typer", "emulator", "msgspec", "uvicorn"}
"""Packages that fixtures or the service need."""
IMPORTS = """
    import sys
    def test_no_fixture_is_used():
        print(sorted(sys.modules))
"""


def imported(folder: Path, *args: str) -> set[str]:
    """Return the modules after a run that uses no fixture."""
    run = run_pytest(folder, "-s", *args, files={"test": IMPORTS})
    assert 0 == run.exit_code, run.output
    return set(ast.literal_eval(re.findall(r"^\[.*\]", run.output, re.MULTILINE)[0]))


@pytest.mark.slow
def test_a_run_without_fixtures_imports_no_client_and_no_service(tmp_path: Path):
    names = imported(tmp_path)

    assert "extcli.pytest_plugin" in names
    assert set() == {name.partition(".")[0] for name in names} & HEAVY
    assert {"extcli", "extcli.pytest_plugin"} == {name for name in names if name.partition(".")[0] == "extcli"}


@pytest.mark.slow
def test_a_run_without_the_plugin_imports_nothing_of_it(tmp_path: Path):
    assert set() == {name for name in imported(tmp_path, "-p", "no:extcli") if name.partition(".")[0] == "extcli"}
