"""What the plugin costs a run of pytest that does not use it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from support.plugin_runs import ROOT, run_pytest

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
    assert {"extcli", "extcli.pytest_plugin", "extcli.testing", "extcli.testing.fixtures"} == {
        name for name in names if name.partition(".")[0] == "extcli"
    }


@pytest.mark.slow
def test_a_run_without_the_plugin_imports_nothing_of_it(tmp_path: Path):
    assert set() == {name for name in imported(tmp_path, "-p", "no:extcli") if name.partition(".")[0] == "extcli"}


def test_the_plugin_is_a_short_module():
    assert 30 > len((ROOT / "src" / "extcli" / "pytest_plugin.py").read_text().splitlines())


@pytest.mark.slow
def test_every_name_of_the_plugin_begins_with_extcli(tmp_path: Path):
    run = run_pytest(tmp_path, "--fixtures", "-v", files={"test": "def test_it(): pass"})
    own = re.findall(r"^(\w+).* -- .*extcli/testing/", run.output, re.MULTILINE)
    options = re.findall(
        r"^  (--\S+)", run_pytest(tmp_path, "--help").output.partition("extcli: a service")[2], re.MULTILINE
    )

    assert ["extcli", "extcli_async", "extcli_factory", "extcli_serve_args", "extcli_server"] == sorted(own)
    assert ["--extcli-url=URL", "--extcli-keep"] == options[:2]
