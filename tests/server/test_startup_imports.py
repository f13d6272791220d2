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
    "--help": {
        "emulator", "litestar", "uvicorn", "uvloop", "asyncio", "http", "httpx", "websockets", "msgspec", "jwt", "rich",
        "pydantic", "json", "logging", "email", "tomlkit", "tomllib", "platformdirs", "filelock", "ijson", "click",
        "extcli.commands", "extcli.session", "extcli.config.settings", "extcli.output.printer",
    },
    "serve": {
        "pydantic", "attr", "attrs", "polyfactory", "faker", "jinja2", "jsonschema", "rich", "httpx", "httpcore", "h11",
        "redis", "hiredis", "opentelemetry", "prometheus_client", "ijson", "tomlkit", "platformdirs",
        "litestar.plugins.pydantic", "litestar.plugins.attrs", "emulator.engines.redis", "emulator.process.tracing",
        "emulator.dashboard.pages", "markupsafe", "emulator.control.explanations.rules",
        "emulator.control.operation.exposition", "extcli.running",
        "emulator.control.snapshots.codec", "emulator.process.snapshot_files", "extcli.snapshots",
    },
    "exec": {
        "emulator", "litestar", "uvicorn", "uvloop", "asyncio", "http", "httpx", "websockets", "msgspec", "jwt", "rich",
        "pydantic", "email", "tomlkit", "tomllib", "platformdirs", "filelock", "ijson", "click",
        "extcli.session", "extcli.extensions",
    },
    "completion": {
        "emulator", "socket", "selectors", "ipaddress", "urllib", "pathlib", "typer", "extcli.api", "extcli.commands",
        "extcli.bounded_json", "extcli.output",
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


def test_help_imports_only_what_it_prints_with(log: Path):
    process = started(log, "--help")
    process.communicate(timeout=STOP_TIMEOUT)

    assert [] == unused("--help", log)


def test_completion_of_a_verb_imports_nothing_that_reads_files_or_services(log: Path):
    typed = {"_EXTCLI_COMPLETE": "complete_bash", "_EXTCLI_LINE": "extcli vote ca"}
    process = started(log, **typed)
    printed, _ = process.communicate(timeout=STOP_TIMEOUT)

    assert "cast" in printed
    assert [] == unused("completion", log)


def test_serve_imports_nothing_that_only_other_options_or_paths_need(log: Path):
    process = started(log, "serve", "--port", "0")
    assert process.stdout is not None
    url = process.stdout.readline().removeprefix("listening on ").strip()
    answer = httpx.get(f"{url}/_emulator/ready")
    process.terminate()
    process.communicate(timeout=STOP_TIMEOUT)

    assert (200, []) == (answer.status_code, unused("serve", log))


def test_exec_itself_imports_nothing_of_the_service(log: Path):
    process = started(log, "exec", "--quiet", "--", "true")
    process.communicate(timeout=STOP_TIMEOUT)

    assert (0, []) == (process.returncode, unused("exec", log))
