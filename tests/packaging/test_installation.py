"""The wheel works in a fresh environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from extcli import __version__

pytestmark = [pytest.mark.slow, pytest.mark.long]

TIMEOUT = 60


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel with pip in a new environment; return its folder of programs.

    Its dependencies come from the environment that runs the tests, through a path file, without the network.
    """
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True, timeout=TIMEOUT)
    python = place / "bin" / "python"
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    install = [sys.executable, "-m", "pip", "--python", python, "install", *options, wheel]
    subprocess.run(install, check=True, timeout=TIMEOUT, env=clean_environment())
    [packages] = (place / "lib").glob("python*/site-packages")
    # Written after the installation, as pip would take the checkout for an installed extcli.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return place / "bin"


def clean_environment() -> dict[str, str]:
    """The variables of this process without those that lead Python or extcli elsewhere."""
    return {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "EXTCLI_", "PIP_"))}


def run(installed: Path, *args: str, folder: Path | None = None, **variables: str) -> str:
    """Run the installed program and return its standard output."""
    return subprocess.run(
        [installed / "extcli", *args],
        env={**clean_environment(), **variables},
        cwd=folder or installed,
        check=True,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    ).stdout


@pytest.fixture
def served(installed: Path, tmp_path: Path) -> Iterator[str]:
    """The URL of a service of the installed program, in an empty home."""
    command = [installed / "extcli", "serve", "--port", "0"]
    home = {**clean_environment(), "HOME": str(tmp_path)}
    with subprocess.Popen(command, env=home, cwd=installed, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().removeprefix("listening on ").strip()
        server.terminate()
    assert 0 == server.returncode


def test_the_installed_program_and_its_service_work(installed: Path, served: str, tmp_path: Path):
    place = {"HOME": str(tmp_path), "EXTCLI_URL": served}
    assert f"extcli {__version__}," in run(installed, "--version")
    assert "require" in run(installed, "connect", "node")  # the preload script
    run(installed, "vote", "cast", "lunch", "3", **place)
    assert "2 votes, mean 4, stddev 1, sum 8, yours: 5\n" in run(
        installed, "vote", "cast", "lunch", "5", "--as", "viewer:U2", "-o", "table", **place
    )
    pages = {"_emulator/sdk.js": "text/javascript", "schema/docs": "text/html", "schema/openapi.json": "application/"}
    for path, kind in pages.items():
        answer = httpx.get(f"{served}/{path}", trust_env=False)
        assert (200, True) == (answer.status_code, answer.headers["content-type"].startswith(kind))
        assert answer.content


@pytest.mark.skipif(not shutil.which("npm"), reason="needs Node.js")
def test_the_installed_program_makes_a_project_whose_tests_pass(installed: Path, tmp_path: Path):
    place = {"HOME": str(tmp_path), "PATH": f"{installed}{os.pathsep}{os.environ['PATH']}"}
    run(installed, "new", "boss", folder=tmp_path, **place)

    assert "# pass 4" in run(installed, "exec", "--", "npm", "test", folder=tmp_path / "boss", **place)
