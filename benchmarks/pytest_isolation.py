"""What isolation costs a test: `python benchmarks/pytest_isolation.py [--tests N] [--workers N] [--cpu]`.

Runs generated tests with the fixture `extcli`, once with a service for each worker and once with one service for all.
Each test votes in the same poll, and fails if it sees a vote of another. Isolation is the set-up and the tear-down of
the fixtures, and what the first request takes longer than the second, because it creates the namespace. `--cpu` reports
the processor time of this machine per test, instead of the median of elapsed times.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

SRC = Path(__file__).parent.parent / "src"
TESTS = """
import time
import pytest

@pytest.mark.parametrize("number", range({tests}))
def test_sees_only_its_own_vote(extcli, number, record_property):
    viewer = extcli.viewer("U%d" % number)
    began = time.perf_counter()
    first = viewer.vote("boss", number % 3)
    between = time.perf_counter()
    second = viewer.vote("boss", number % 3)
    ended = time.perf_counter()
    assert (first["count"], second["count"]) == (1, 1)
    record_property("creation", (between - began) - (ended - between))
"""
CONFTEST = """
import json, os, pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" not in os.environ:
        with open("durations", "a") as file:
            properties = dict(report.user_properties) if report.when == "call" else {}
            file.write(json.dumps([report.nodeid, report.when, report.duration, properties.get("creation", 0)]) + "\\n")
    return (yield)
"""


@dataclass(frozen=True)
class Result:
    """A run of pytest."""

    exit_code: int
    output: str
    isolation: list[float]
    """Seconds for each test, without the first of each worker, which starts the service."""
    left: list[str]
    """Namespaces that the run left in the shared service."""


def measure(tests: int, workers: int, *, shared: bool) -> Result:
    """Run the tests."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_isolation.py").write_text(TESTS.format(tests=tests))
        (folder / "conftest.py").write_text(CONFTEST)
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(workers), "--rootdir", name]
        if not declared():
            pytest += ["-p", "extcli.pytest_plugin"]
        extcli = [sys.executable, "-m", "extcli"]
        commands = [
            *extcli,
            "exec",
            "--quiet",
            "--",
            "sh",
            "-c",
            '"$@"; code=$?; extcli ns list -o json > left; exit $code',
            "sh",
        ]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("EXTCLI_", "PYTEST_"))}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SRC), os.environ.get("PYTHONPATH")]))
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        run = subprocess.run(
            [*(commands if shared else []), *pytest],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        left = json.loads((folder / "left").read_text())["namespaces"] if shared else []
        return Result(run.returncode, run.stdout + run.stderr, _isolation(folder / "durations", workers), left)


def declared() -> bool:
    """Return whether an installed package declares the plugin."""
    from importlib.metadata import entry_points

    return bool(entry_points(group="pytest11", name="extcli"))


def _isolation(file: Path, workers: int) -> list[float]:
    by_test: dict[str, float] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        test, when, duration, creation = json.loads(line)
        phase = creation if when == "call" else duration
        by_test[test] = by_test.get(test, 0.0) + phase
    # The slowest of each worker started a service or a connection.
    return sorted(by_test.values())[: -workers or None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--tests", type=int, default=5_000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--cpu", action="store_true", help="report processor time")
    options = parser.parse_args()
    for shared, where in ((True, "one service"), (False, "a service for each worker")):
        began, used = time.perf_counter(), os.times()
        result = measure(options.tests, options.workers, shared=shared)
        wall, after = time.perf_counter() - began, os.times()
        cpu = sum(after[2:4]) - sum(used[2:4])
        summary = re.findall(r"\d+ (?:passed|failed|errors?)", result.output) or [result.output[-2000:]]
        print(f"{where}: {', '.join(summary)} with {options.workers} workers in {wall:.0f} s; left: {len(result.left)}")
        if options.cpu:
            print(f"  {cpu / options.tests * 1000:.1f} ms of processor time a test, with everything")
        elif len(result.isolation) > 20:
            middle, p99 = median(result.isolation) * 1000, quantiles(result.isolation, n=100)[98] * 1000
            print(f"  isolation: median {middle:.1f} ms a test, p99 {p99:.1f} ms; the goal is a median of 8.0")


if __name__ == "__main__":
    main()
