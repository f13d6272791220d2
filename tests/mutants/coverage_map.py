"""Which tests execute which lines: one run of the tests with coverage.py, which notes each line's tests."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from mutants.parts import BUILD, PARTS, SOURCES, files_of, tests

_MAP: Final = BUILD / "map.json"
_PARAMETERS: Final = 2
"""With how many parameters a test is recorded. The others are taken to execute the same lines."""


class Test(NamedTuple):
    """A test that passed."""

    id: str
    seconds: float
    lines: int
    """How many lines of the parts it executed."""


class _Recorder:
    """A plugin of pytest that tells coverage.py which test runs."""

    def __init__(self, coverage: Any, share: int, shares: int) -> None:
        self._coverage = coverage
        self._share = share, shares
        self.passed: dict[str, float] = {}
        """Seconds by the test's id."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep this process's share of the test files, and few of the parameters of each test."""
        number, of = self._share
        files = {name: index for index, name in enumerate(sorted({each.path for each in items}))}
        seen: Counter[str] = Counter()
        kept = []
        for item in items:
            function = function_of(item.nodeid)
            seen[function] += 1
            if files[item.path] % of == number and (seen[function] <= _PARAMETERS or "/rules/" in function):
                kept.append(item)
        items[:] = [each for each in kept if "/features/" not in each.nodeid or not each.get_closest_marker("slow")]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._coverage.switch_context(item.nodeid)
        self.passed[item.nodeid] = 0.0
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.passed and report.nodeid in self.passed:
            self.passed[report.nodeid] += report.duration
        elif not report.passed:
            self.passed.pop(report.nodeid, None)


def function_of(id: str) -> str:
    """Return the id of a test without its parameters."""
    return id.partition("[")[0]


def record(processes: int) -> None:
    """Run the tests in this many processes, and write the map."""
    BUILD.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    running = [
        subprocess.Popen([sys.executable, "-m", __spec__.name, str(number), str(processes)])
        for number in range(processes)
    ]
    for each in running:
        each.wait()
    shares = [json.loads(_share(number).read_text()) for number in range(processes)]
    _write(shares)
    print(f"recorded {sum(len(each['passed']) for each in shares)} tests in {time.monotonic() - started:.0f} s")


def record_share(number: int, of: int) -> None:
    """Run every `of`-th file of tests, and write which tests executed which lines."""
    from coverage import Coverage  # only this needs it

    file = BUILD / f"coverage-{number}"
    file.unlink(missing_ok=True)
    include = [str(SOURCES / pattern) for patterns in PARTS.values() for pattern in patterns]
    coverage = Coverage(data_file=str(file), include=include, config_file=False, messages=False)
    recorder = _Recorder(coverage, number, of)
    coverage.start()
    try:
        pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", "--tb=line", *tests()], plugins=[recorder])
    finally:
        coverage.stop()
    coverage.save()
    data = coverage.get_data()
    lines = {_name(path): data.contexts_by_lineno(str(path)) for part in PARTS for path in files_of(part)}
    _share(number).write_text(json.dumps({"passed": recorder.passed, "lines": lines}))


def _share(number: int) -> Path:
    return BUILD / f"share-{number}.json"


def _write(shares: list[Any]) -> None:
    passed = {id: seconds for share in shares for id, seconds in share["passed"].items()}
    ids = {id: number for number, id in enumerate(passed)}
    counts = [0] * len(ids)
    files: dict[str, Any] = {}
    for part in PARTS:
        for path in files_of(part):
            lines: dict[str, list[int]] = {}
            for share in shares:
                for line, contexts in share["lines"][_name(path)].items():
                    found = [ids[each] for each in contexts if each in ids]
                    lines.setdefault(line, []).extend(found)
                    for each in found:
                        counts[each] += 1
            files[_name(path)] = {"sha256": _digest(path), "lines": lines}
    tests = [(id, round(seconds, 3), count) for (id, seconds), count in zip(passed.items(), counts, strict=True)]
    _MAP.write_text(json.dumps({"tests": tests, "files": files}, separators=(",", ":")))


class CoverageMap:
    """The recorded map."""

    def __init__(self) -> None:
        """Raise `FileNotFoundError` if nothing was recorded."""
        content = json.loads(_MAP.read_text())
        self._tests = [Test(*each) for each in content["tests"]]
        self._files = content["files"]
        self._in_file: dict[str, dict[int, int]] = {}

    def covering(self, path: Path, first: int, last: int) -> list[Test]:
        """Return the tests that execute one of these lines: first those with the most of their lines in this file.

        If the file has changed since the recorded run, return those that execute any line of it.
        """
        name = _name(path)
        recorded = self._files.get(name, {"sha256": "", "lines": {}})
        lines = recorded["lines"]
        is_current = recorded["sha256"] == _digest(path)
        if name not in self._in_file:
            shares: dict[int, int] = {}
            for numbers in lines.values():
                for number in numbers:
                    shares[number] = shares.get(number, 0) + 1
            self._in_file[name] = shares
        executed = range(first, last + 1) if is_current else lines
        found = {number for line in executed for number in lines.get(str(line), ())}
        share = self._in_file[name]
        in_order = sorted(
            found, key=lambda each: (-round(share[each] / self._tests[each].lines, 1), self._tests[each].seconds)
        )
        return _varied([self._tests[each] for each in in_order])


def _varied(tests: list[Test]) -> list[Test]:
    """Return the same tests: the first of each file, then the second, and those with other parameters at the end."""
    functions: set[str] = set()
    of_file: Counter[str] = Counter()
    keyed = []
    for test in tests:
        function = function_of(test.id)
        file = function.partition("::")[0]
        keyed.append((function in functions, of_file[file], test))
        functions.add(function)
        of_file[file] += 1
    return [test for _, _, test in sorted(keyed, key=lambda each: each[:2])]


def _name(path: Path) -> str:
    return path.relative_to(SOURCES).as_posix()


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    record_share(*map(int, sys.argv[1:]))
