"""`extcli exec --fail-on parity`: a run fails if production would have acted differently."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.exec_process import run_exec
from support.extension_files import write_extensions
from support.service import CHANNEL, CLIENT_ID, SECRET

pytestmark = pytest.mark.long

PROGRAM = """
import os, sys, time, urllib.request
import jwt
claims = {{"role": "viewer", "user_id": "1", "channel_id": {channel!r}, **{claims!r}}}
token = jwt.encode(claims, {secret!r})
url = os.environ["EXTCLI_URL"]
headers = {{"Authorization": f"{client_id} {{token}}", "X-Request-Id": "of-the-command"}}
urllib.request.urlopen(urllib.request.Request(f"{{url}}{path}/v1/e/vote", headers=headers))
if {reset}:
    urllib.request.urlopen(urllib.request.Request(f"{{url}}/_emulator/reset", method="POST"))
sys.exit({code})
"""


@pytest.fixture
def extensions(tmp_path: Path) -> list[str]:
    """The options for an extensions file with the secret of the tests."""
    return ["--extensions", write_extensions(tmp_path)]


def run(
    *args: str, claims: dict[str, object] | None = None, code: int = 0, path: str = "", reset: bool = False
) -> tuple[int, str]:
    """Run a command that makes one call; return the exit code and standard error."""
    program = PROGRAM.format(
        channel=CHANNEL, claims=claims or {}, secret=SECRET, client_id=CLIENT_ID, code=code, path=path, reset=reset
    )
    ended, _, log = run_exec("--quiet", *args, "--", sys.executable, "-c", program)
    return ended, log


def test_a_run_fails_if_production_would_have_refused_a_request(extensions: list[str]):
    for where in ({}, {"reset": True}, {"path": "/_ns/other"}):  # also before a reset, and in a namespace
        code, log = run("--fail-on", "parity", *extensions, **where)  # type: ignore[arg-type]

        assert (7, True) == (code, "exp: would refuse 1 request" in log)
        assert "of-the-command GET /v1/e/vote" in log.replace("/_ns/other", "")


def test_a_run_succeeds_if_production_would_have_responded_equally_or_fails_itself(extensions: list[str]):
    assert (0, "") == run("--fail-on", "parity", *extensions, claims={"exp": 4_000_000_000})
    assert (3, "") == run("--fail-on", "parity", *extensions, code=3)


def test_a_wrong_option_is_refused_before_the_command_runs():
    for args, problem in (
        (["--fail-on", "errors"], "must be parity or parity=RULE"),
        (["--fail-on", "parity=stages"], "there is no rule 'stages'"),
        (["--fail-on", "parity", "--production", "--extensions", "x.toml"], "--fail-on does not work with"),
    ):
        code, printed, log = run_exec(*args, "--", "echo", "ran")

        assert (2, "") == (code, printed)
        assert problem in log
