"""`extcli expect parity`: no request that production would have answered differently."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from support.browser import BROWSERS, BUNDLE, SDK
from support.exec_process import run_exec
from support.plugin_runs import PLAIN, ROOT, declare_plugin
from support.program import SECRET_BASE64
from support.service import CHANNEL, CLIENT_ID, LiveServer, real_seconds


def vote(live: LiveServer, number: int, **claims: object) -> None:
    client = live.client("viewer", user="1", channel=CHANNEL, **claims)
    client.get("vote", headers={"X-Request-Id": f"vote-{number}"}).raise_for_status()


def test_a_difference_is_listed_with_its_requests(extcli, live, production):
    extcli("expect", "parity", "--url", production.url, exits=2)
    extcli("expect", "parity", fails=0)
    for number in (1, 2):
        vote(live, number)

    result = extcli("expect", "parity", exits=7)

    assert [["exp", "refuse", "2", "vote-1", "vote-2"]] == result.rows
    assert [line for line in result.stderr.splitlines() if "vote-2 GET /v1/e/vote" in line]


def test_only_the_named_rules_count(extcli, live):
    vote(live, 1)
    vote(live, 2, exp=real_seconds() + 60)

    assert 0 == extcli("expect", "parity", "stage,rate").exit_code
    assert ["signature"] == [row[0] for row in extcli("expect", "parity", "unknown").rows]
    assert ["exp"] == [each["rule"] for each in extcli("expect", "parity", "exp", "-o", "json").json["rules"]]


def test_a_reset_forgets_the_differences_except_the_services_totals(extcli, live):
    vote(live, 1)
    live.reset()

    assert 0 == extcli("expect", "parity").exit_code
    assert 7 == extcli("expect", "parity", "--service").exit_code


# A project with pytest, node:test and a page: `--fail-on parity` passes it, and fails for one wrong signature


PROJECT = SDK / "judged"
RUNS = {
    "pytest": [sys.executable, "-m", "pytest", "-q", *PLAIN, "backend_tests.py"],
    "node": ["node", "--test", "backend.test.mjs"],
    "page": ["node", "page.mjs"],
}


@pytest.fixture
def project(tmp_path: Path, extcli) -> Path:
    """A copy of the project, with the module that `extcli connect` prints, and the file of its extension."""
    if not shutil.which("node") or not BUNDLE.is_file():
        pytest.skip("needs Node.js and the packages that `make test` installs")
    folder = tmp_path / "project"
    shutil.copytree(PROJECT, folder)
    (folder / "extcli.mjs").write_text(extcli("connect", "node-test").stdout)
    (folder / "extensions.toml").write_text(f'[extensions.{CLIENT_ID}]\nsecrets = ["{SECRET_BASE64}"]\n')
    return folder


def run(project: Path, name: str, **variables: str) -> tuple[int, str]:
    """Run one part of the project with a service; return the exit code, and all that was printed."""
    command = list(RUNS[name])
    if name == "page":
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        if not browser:
            pytest.skip("needs Chromium")
        command += [browser, str((SDK / "node_modules").resolve())]
    path = os.pathsep.join([str(declare_plugin(project)), str(ROOT / "src")])
    options = ("--quiet", "--extensions", "extensions.toml", "--fail-on", "parity", "--")
    code, printed, log = run_exec(
        *options, *command, env={"PYTHONPATH": path, "HOME": str(project), **variables}, cwd=project
    )
    return code, printed + log


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_a_project_whose_calls_production_takes_passes(project: Path, name: str):
    code, printed = run(project, name)

    assert 0 == code, printed


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_a_project_with_a_wrong_signature_fails(project: Path, name: str):
    code, printed = run(project, name, WRONG_KEY="a secret that no extension has, at all")

    assert (7, True) == (code, "signature: would refuse" in printed), printed
    assert 1 == printed.count("would refuse"), printed
