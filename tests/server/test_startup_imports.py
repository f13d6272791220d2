"""What the program imports before its first output or response: start-up time and idle memory depend on it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from support.process import STOP_TIMEOUT
from support.program import PROGRAM

pytestmark = pytest.mark.slow

UNUSED = {
    "--help": {"emulator", "litestar", "asyncio", "http", "httpx", "websockets", "msgspec", "jwt", "json", "click"},
    "serve": {
        "rich", "httpx", "jinja2", "redis", "prometheus_client", "ijson", "tomlkit", "platformdirs", "psutil",
        "emulator.storage.redis", "emulator.process.tracing", "emulator.dashboard.pages",
        "cryptography.hazmat.bindings",
    },
    "exec": {"emulator", "litestar", "asyncio", "http", "httpx", "websockets", "msgspec", "jwt", "rich", "click"},
    "completion": {"emulator", "socket", "urllib", "typer", "extcli.api", "extcli.commands"},
    "live names": {
        "typer", "pydantic", "rich", "httpx", "http", "inspect", "email", "ssl", "platformdirs", "logging",
    },
}  # fmt: skip
"""Modules by command; a package stands for its modules, too. `serve` has its default options."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the imports of a program are logged. A pipe would be full before the program is ready."""
    return tmp_path / "imports.log"


def started(log: Path, *args: str, **variables: str) -> subprocess.Popen[str]:
    """Start the program; Python logs its imports."""
    command = [sys.executable, "-X", "importtime", PROGRAM, *args]
    with log.open("w") as stderr:
        environment = {**os.environ, **variables}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment)


def unused(command: str, log: Path) -> list[str]:
    """Return the modules of the log that this command must not import."""
    names = re.findall(r"^import time: .* \| +(\S+)$", log.read_text(), re.MULTILINE)
    assert "extcli.main" in names
    if command != "completion":
        names = [name for name in names if name != "emulator" and not name.startswith("emulator.contract")]
    return [name for name in names if any(f"{name}.".startswith(f"{each}.") for each in UNUSED[command])]


@pytest.mark.parametrize(
    ("command", "args", "typed"),
    [
        ("--help", ["--help"], ""),
        ("completion", [], "extcli vote ca"),
        ("live names", [], "extcli vote get --url http://127.0.0.1:1 "),
        ("exec", ["exec", "--quiet", "--", "true"], ""),
    ],
)
def test_a_command_imports_nothing_of_others(log: Path, command: str, args: list[str], typed: str):
    variables = {"_EXTCLI_COMPLETE": "complete_bash", "_EXTCLI_LINE": typed} if typed else {}
    process = started(log, *args, **variables)
    process.communicate(timeout=4 * STOP_TIMEOUT)

    assert (0, []) == (process.returncode, unused(command, log))


def test_serve_imports_nothing_that_only_other_options_or_paths_need(log: Path):
    process = started(log, "serve", "--port", "0")
    assert process.stdout is not None
    url = process.stdout.readline().removeprefix("listening on ").strip()
    answer = httpx.get(f"{url}/_emulator/ready")
    process.terminate()
    process.communicate(timeout=4 * STOP_TIMEOUT)

    assert (200, []) == (answer.status_code, unused("serve", log))
