"""Every command that the README shows works as shown. Installing and `make check` are what CI itself does."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.service import Live

README = (Path(__file__).parent.parent.parent / "README.md").read_text()
SCRIPTS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
SERVES = re.findall(r"^\$ (extcli serve.*)$", README, re.MULTILINE)


def environment(**more: str) -> dict[str, str]:
    # The programs of the environment that runs the tests come first, as after `activate`.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", **more}


def kept_in(place: Path) -> dict[str, str]:
    """What the program keeps is not the user's."""
    return {"EXTCLI_STATE_DIR": str(place / "state"), "EXTCLI_CONFIG": str(place / "config.toml")}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.splitlines()[0][:40])
def test_a_script_of_the_readme_runs_without_an_error(live: Live, tmp_path: Path, script: str):
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment(EXTCLI_URL=live.url, **kept_in(tmp_path)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (0, "") == (result.returncode, "\n".join(re.findall("^extcli: .*", result.stderr, re.MULTILINE)))


def test_the_thirty_seconds_end_with_a_counted_poll(live: Live, tmp_path: Path):
    result = subprocess.run(
        ["bash", "-euc", SCRIPTS[0]],
        cwd=tmp_path,
        env=environment(EXTCLI_URL=live.url, **kept_in(tmp_path)),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert "3\t1\n5\t1\n" == result.stdout[-8:]


@pytest.mark.parametrize("command", SERVES)
def test_a_service_of_the_readme_starts_and_stops(tmp_path: Path, command: str):
    (tmp_path / "extensions.toml").write_text("".join(re.findall(r"```toml\n(.*?)```", README, re.DOTALL)))
    (tmp_path / "my-extension.secret").write_text(base64.b64encode(os.urandom(32)).decode())

    service = subprocess.Popen(
        ["bash", "-c", f"exec {command}".replace("/srv/", f"{tmp_path}/")],
        cwd=tmp_path,
        env=environment(EXTCLI_SERVE_PORT="0"),
        stdout=subprocess.PIPE,
        text=True,
    )
    with service:
        assert service.stdout is not None
        first_line = service.stdout.readline()
        service.send_signal(signal.SIGTERM)

    assert re.fullmatch(r"listening on http://127\.0\.0\.1:\d+\n", first_line)
    assert 0 == service.returncode
