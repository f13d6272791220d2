"""The examples: the script runs, and the tests of the project pass, and say so if there is a bug."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import ROOT

from support import preloaded
from support.browser import BROWSERS, SDK
from support.plugin_runs import declare_plugin
from support.program import PROGRAM

PROJECT = ROOT / "examples" / "project"
MODULES = SDK / "node_modules"
TIMEOUT = 300

RUNNERS = {"pytest": "5 passed", "node": "# pass 5", "vitest": "5 passed", "playwright": "4 passed"}
"""What each runner prints when all is well."""


def make(folder: Path, runner: str, *args: str) -> tuple[int, str, str]:
    """Run the tests of one runner in a copy of the project, with a running service; return code and outputs."""
    if not shutil.which("node") or not shutil.which("make"):
        pytest.skip("needs Node.js and make")
    if runner in ("vitest", "playwright") and not (MODULES / ".bin" / runner).exists():
        pytest.skip("needs the packages that `make test` installs")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if runner == "playwright" and not browser:
        pytest.skip("needs Chromium")
    copy = folder / "project"
    shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns("node_modules", "test-results", "__pycache__"))
    if MODULES.exists():
        (copy / "node_modules").symlink_to(MODULES.resolve())
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EXTCLI_", "PYTEST_", "MAKE"))}
    environment = {
        **kept,
        "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(declare_plugin(folder)), str(ROOT / "src")]),
        "CHROMIUM": browser or "",
        "NO_COLOR": "1",
    }
    with preloaded.start(["exec", "--quiet", "--", "make", f"test-{runner}", *args], environment, copy) as run:
        printed, log = run.communicate(TIMEOUT)
    assert run.returncode is not None
    return run.returncode, printed, log


@pytest.mark.slow
@pytest.mark.parametrize(
    "runner", [each if each == "node" else pytest.param(each, marks=pytest.mark.long) for each in RUNNERS]
)
def test_the_tests_of_the_project_pass_with_four_workers(tmp_path: Path, runner: str):
    code, printed, log = make(tmp_path, runner)

    assert (0, True) == (code, RUNNERS[runner] in printed), printed + log


@pytest.mark.long
def test_a_planted_bug_fails_with_a_readable_message(tmp_path: Path):
    code, printed, log = make(tmp_path, "node", "PLANTED_BUG=1")

    assert (2, True) == (code, "'Hydra' !== null" in re.sub(r"\x1b\[[0-9;]*m", "", printed)), log


EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.long
def test_a_poll_night_reads_back_everything_after_a_kill(tmp_path: Path, programs: Path):
    path = f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    result = subprocess.run(
        [EXAMPLES / "poll_night.sh"],
        cwd=tmp_path,
        env={"PATH": path, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (0, True) == (result.returncode, "the votes are identical" in result.stdout), result.stderr
    assert "CRITICAL" not in result.stderr  # the service has ended before its data is removed
    assert '{"round":2,"boss":"Dragon","scores":{"red":7}}' in result.stdout.splitlines()
