"""Every example in the help of a command works: a shell runs it, with the files and data that the examples assume."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import httpx
import pytest

from support.cli_reference import commands, examples
from support.help_examples import BEFORE, COMPRESSED, ENDLESS, FILES, FILLED_BY, NOT_RUN
from support.program import PROGRAM
from support.service import LiveServer

pytestmark = pytest.mark.slow

EXAMPLES = list(dict.fromkeys(line for _, command in commands() for line in examples(command)))


def environment(folder: Path, live: LiveServer) -> dict[str, str]:
    path = os.pathsep.join([str(folder / "bin"), str(PROGRAM.parent), os.environ["PATH"]])
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    places = {"EXTCLI_CONFIG": str(folder / "config.toml"), "EXTCLI_STATE_DIR": str(folder / "state")}
    return {**kept, **places, "PATH": path, "HOME": str(folder / "home"), "LC_ALL": "C.UTF-8", "EXTCLI_URL": live.url}


def run(script: str, folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-uo", "pipefail", "-c", script], cwd=folder, env=variables, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


@pytest.fixture
def prepared(live: LiveServer, tmp_path: Path, programs: Path) -> Path:
    """A folder with the files of the examples, and a service with their data."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "hats.txt.gz").write_bytes(COMPRESSED)
    (tmp_path / "bin").symlink_to(programs)
    return tmp_path


def reason_not_to_run(line: str) -> str:
    return next((reason for start, reason in NOT_RUN.items() if line.startswith(start)), "")


def test_the_examples_of_the_help_work(live: LiveServer, prepared: Path) -> None:
    variables = environment(prepared, live)
    filled = run(f"set -e\n{FILLED_BY}", prepared, variables)
    assert 0 == filled.returncode, filled.stderr
    data = httpx.get(f"{live.url}/_emulator/snapshot?keys=true").content
    kept = {name: (prepared / name).read_bytes() for name in ("config.toml", "extensions.toml")}
    failed = []

    for line in EXAMPLES:
        if reason_not_to_run(line):
            continue
        httpx.put(f"{live.url}/_emulator/snapshot", content=data, timeout=30).raise_for_status()
        for name, content in kept.items():
            (prepared / name).write_bytes(content)
        first = next((script for text, script in BEFORE.items() if text in line), "")
        place = line.replace("http://127.0.0.1:8282", live.url).replace("curl -H", "curl -sSf -H")
        endless = any(text in line for text in ENDLESS)
        script = f"timeout --signal=INT 1 bash -c {_quoted(place)}" if endless else place
        result = run(f"{first} >/dev/null\n{script}" if first else script, prepared, variables)
        if result.returncode not in ((0, 7, 124, 130) if endless else (0,)):
            failed.append(f"{line}: exit code {result.returncode}, {result.stderr}")

    assert not failed, "\n".join(failed)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_no_reason_for_not_running_an_example_is_left_over() -> None:
    assert [] == [start for start in NOT_RUN if not any(line.startswith(start) for line in EXAMPLES)]
