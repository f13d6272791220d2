"""`make` installs once, and names missing packages first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
STAMPS = (".extcli-serve", ".extcli-dev")
INSTALL = "pip install"

Make = Callable[..., str]


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment as `make` leaves it: only what `make` looks at."""
    (tmp_path / "pyvenv.cfg").touch()
    for stamp in STAMPS:
        (tmp_path / stamp).write_text(f"{ROOT}\n")
    return tmp_path


@pytest.fixture
def make(environment: Path) -> Make:
    """`make("-n", "serve")` returns what make prints; the virtual environment is `environment`."""
    if not shutil.which("make"):
        pytest.skip("needs make")
    inherited = (
        "MAKEFLAGS",
        "MFLAGS",
        "MAKELEVEL",
        "MAKEOVERRIDES",
        "ARGS",
    )  # of the `make test` that runs these tests
    variables = {name: value for name, value in os.environ.items() if name not in inherited}

    def run(*args: str) -> str:
        return subprocess.run(
            ["make", *args],
            cwd=ROOT,
            env={**variables, "VIRTUAL_ENV": str(environment)},
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout

    return run


@pytest.mark.parametrize("target", ["serve", "quick"])
def test_an_installed_environment_is_used_unchanged(make: Make, environment: Path, target: str):
    steps = make("-n", target).splitlines()

    assert [str(environment / "bin")] == [step.split()[0].rpartition("/")[0] for step in steps]


def test_a_first_run_makes_the_environment_and_installs(make: Make, environment: Path):
    for name in ("pyvenv.cfg", *STAMPS):
        (environment / name).unlink()

    steps = make("-n", "serve")

    assert steps.index("-m venv") < steps.index(INSTALL) < steps.index("extcli serve")


@pytest.mark.parametrize("target", ["serve", "quick"])
def test_a_change_of_pyproject_installs_again(make: Make, environment: Path, target: str):
    for stamp in STAMPS:
        os.utime(environment / stamp, (0, 0))

    assert 1 == make("-n", target).count(INSTALL)


def test_an_environment_that_holds_another_checkout_installs_again(make: Make, environment: Path):
    (environment / STAMPS[0]).write_text("/another/checkout\n")

    assert INSTALL in make("-n", "serve")


def test_arguments_reach_the_service(make: Make):
    assert make("-n", "serve", "ARGS=--port 0").endswith("extcli serve  --port 0\n")


def test_the_service_on_the_usual_port_has_a_name_for_extcli_status(make):
    assert make("-n", "serve").rstrip().endswith("extcli serve --name make-serve")
    assert make("-n", "serve", "ARGS=--name mine").rstrip().endswith("extcli serve  --name mine")


def test_help_is_the_default_and_lists_every_target(make: Make):
    targets = re.findall(r"^(?!check-)([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert make() == make("help")
    assert sorted(targets) == sorted(re.findall(r"^make ([\w-]+) +\w", make("help"), re.MULTILINE))


def missing(target: str, place: Path, *programs: str, ci: str = "") -> tuple[int, str]:
    """The exit code and the line of `missing-packages` where only these programs exist."""
    for program in programs:
        (place / program).symlink_to(shutil.which("true") or "")
    result = subprocess.run(
        ["/bin/sh", ROOT / ".ci" / "missing-packages", target],
        cwd=place,
        env={"PATH": str(place), "CI": ci},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    return result.returncode, result.stdout + result.stderr


FOR_TESTS = ("node", "npm", "google-chrome", "valkey-server", "curl", "zsh", "fish", "ip")


@pytest.mark.parametrize("target", ["serve", "test", "list"])
def test_a_complete_system_misses_nothing(tmp_path: Path, target: str):
    code, line = missing(target, tmp_path, "make", "python3", *FOR_TESTS)

    assert (0, "") == (code, line.strip())


def test_the_tests_of_windows_need_wine_and_a_compiler(tmp_path: Path):
    line = "missing Debian packages: wine gcc-mingw-w64-x86-64 (required)\n"

    assert (1, line) == missing("windows", tmp_path, "make", "python3", *FOR_TESTS)


def test_packages_for_some_tests_are_optional(tmp_path: Path):
    line = "missing Debian packages: npm redis-server (tests that need them are skipped)\n"

    assert (0, line) == missing("test", tmp_path, "make", "python3", "node", "chromium", "curl", "zsh", "fish", "ip")


def test_packages_for_some_tests_are_required_in_ci(tmp_path: Path):
    line = "missing Debian packages: npm (required)\n"

    assert (1, line) == missing(
        "test", tmp_path, "make", "python3", "node", "chromium", "curl", "zsh", "fish", "ip", "redis-server", ci="true"
    )


def test_a_system_without_python_cannot_serve(tmp_path: Path):
    assert (1, "missing Debian packages: python3 python3-venv (required)\n") == missing("serve", tmp_path, "make")


def test_an_old_python_is_named(tmp_path: Path):
    (tmp_path / "python3").write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.2\n')
    (tmp_path / "python3").chmod(0o755)

    assert (1, "extcli needs Python 3.11 or later; python3 is Python 3.9.2\n") == missing("serve", tmp_path, "make")


def test_every_step_that_installs_says_so_first(make: Make, environment: Path):
    for name in ("pyvenv.cfg", *STAMPS):
        (environment / name).unlink()
    steps = [line for line in make("-n", "-W", "tests/sdk/package.json", "test").splitlines() if "touch" not in line]

    installing = [index for index, step in enumerate(steps) if " install --" in step or "-m venv" in step]
    said = [steps[index - 1] if "echo" in steps[index - 1] else steps[index - 2] for index in installing]

    assert 3 == len(installing)
    assert all(step.startswith("echo ") for step in said), said
    assert "--silent" not in "".join(steps)


def other_pythons(place: Path, **versions: str) -> list[str]:
    """The further versions that CI tests, where these programs print these versions; "" fails like a pyenv shim."""
    for name, version in versions.items():
        program = place / name.replace("_", ".")
        program.write_text(f"#!/bin/sh\n{f'echo {version!r}' if version else 'exit 127'}\n")
        program.chmod(0o755)
    script = [ROOT / ".ci" / "other-pythons", place / "python3.11"]
    path = {"PATH": f"{place}:/usr/bin:/bin"}
    printed = subprocess.run(script, env=path, capture_output=True, text=True, check=True, timeout=20).stdout
    return [name for name in printed.split() if (place / name).exists()]


def test_ci_tests_each_further_python(tmp_path: Path):
    versions = {"python3_11": "(3, 11)", "python3_13": "(3, 13)", "python3_14": "(3, 14)", "python3_15": ""}

    assert ["python3.13", "python3.14"] == other_pythons(tmp_path, **versions)


def test_ci_needs_no_further_python(tmp_path: Path):
    assert [] == other_pythons(tmp_path, python3_11="(3, 11)")
