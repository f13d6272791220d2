"""Runs tests against mutants: one process has imported everything, and forks a child for each mutant."""

from __future__ import annotations

import ast
import faulthandler
import gc
import importlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType
from typing import Final

import pytest

from mutants.mutant_list import Located
from mutants.operators import mutated
from mutants.parts import PARTS, ROOT, SOURCES, files_of

_PATIENCE: Final = 40.0
"""Seconds for one test with its fixtures. A test that takes longer has met an endless loop or a lost response."""

NOT_RUN: Final = "not run"


@dataclass
class Trial:
    """One mutant, or none, and the tests to run against it, in order; a file stands for all its tests."""

    number: int
    located: Located | None
    tests: Sequence[str]
    verdict: str = NOT_RUN
    by: str = ""
    """The test that failed, or took too long."""
    ran: int = 0
    """How many tests began."""
    seconds: float = 0.0


@dataclass
class _Child:
    process: int
    trial: Trial
    output: int
    """The pipe from which its progress is read."""
    started: float
    last: float
    """When the running test began, in seconds."""
    rest: bytes = b""


@dataclass
class Functions:
    """The functions of this process, by the file, the qualified name and the line of their code."""

    by_key: dict[tuple[str, str, int], list[FunctionType]] = field(default_factory=dict)

    @classmethod
    def collect(cls) -> Functions:
        """Import the modules of all parts, and find their functions, wrapped ones and lambdas included."""
        for part in PARTS:
            for path in files_of(part):
                name = ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
                importlib.import_module(name)
        found = cls()
        folder = str(SOURCES)
        gc.unfreeze()  # or the collector leaves out what the tests' own configuration has frozen
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(folder):
                found.by_key.setdefault(_key(each.__code__), []).append(each)
        return found

    def install(self, path: Path, tree: ast.Module) -> int:
        """Give the functions of a file the code of `tree`; return how many changed."""
        new: dict[tuple[str, str, int], list[CodeType]] = {}
        for code in _codes(compile(tree, str(path), "exec", dont_inherit=True)):
            new.setdefault(_key(code), []).append(code)
        changed = 0
        for key, functions in self.by_key.items():
            if key[0] != str(path):
                continue
            for function in functions:
                codes = new.get(key, ())
                if len(codes) == 1 and codes[0] != function.__code__:
                    function.__code__ = codes[0]
                    changed += 1
        return changed


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


class Trials:
    """A plugin of pytest that runs trials instead of the collected tests."""

    def __init__(self, trials: Sequence[Trial], jobs: int, report: int) -> None:
        """`report` is the file descriptor for one line per trial."""
        self._waiting = list(reversed(trials))
        self._jobs = jobs
        self._report = report
        self._items: dict[str, pytest.Item] = {}
        self._failed = False
        self._functions = Functions()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        self._functions = Functions.collect()
        gc.collect()
        gc.freeze()
        running: dict[int, _Child] = {}
        with selectors.DefaultSelector() as selector, TemporaryDirectory() as folder:
            while self._waiting or running:
                while self._waiting and len(running) < self._jobs:
                    child = self._fork(self._waiting.pop(), Path(folder))
                    running[child.output] = child
                    selector.register(child.output, selectors.EVENT_READ)
                for event, _ in selector.select(1):
                    self._read(running[int(event.fd)])
                for child in [each for each in running.values() if _is_over(each)]:
                    selector.unregister(child.output)
                    del running[child.output]
                    self._end(child)
        return True

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def _fork(self, trial: Trial, folder: Path) -> _Child:
        output, pipe = os.pipe()
        now = time.monotonic()
        process = os.fork()
        if process:
            os.close(pipe)
            return _Child(process, trial, output, now, now)
        try:
            os.setsid()
            faulthandler.disable()
            place = folder / str(trial.number)
            place.mkdir()
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(place)
            self._run(trial, pipe)
        finally:
            os._exit(0)

    def _run(self, trial: Trial, pipe: int) -> None:
        """Run the tests of a trial in a child, and write which one begins, and whether it fails."""
        if trial.located:
            found = trial.located
            try:
                changed = self._functions.install(found.path, mutated(found.tree, found.site))
            except ValueError:  # a closure would lose a variable
                changed = 0
            if not changed:
                os.write(pipe, b"not installed\n")
                return
        plugins = next(iter(self._items.values())).config.pluginmanager
        plugins.unregister(name="terminalreporter")
        items = self._chosen(trial)
        for item, following in zip(items, [*items[1:], None], strict=True):
            os.write(pipe, f"begin {item.nodeid}\n".encode())
            try:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            except BaseException:
                self._failed = True
            if self._failed:
                os.write(pipe, b"killed\n")
                return
        os.write(pipe, b"survived\n" if items else b"not covered\n")

    def _chosen(self, trial: Trial) -> list[pytest.Item]:
        """Return the tests of a trial that exist. A name without `::` means all tests of a file."""
        chosen: dict[str, pytest.Item] = {}
        for name in trial.tests:
            if name in self._items:
                chosen.setdefault(name, self._items[name])
            elif "::" not in name:
                for id, item in self._items.items():
                    if id.startswith(f"{name}::"):
                        chosen.setdefault(id, item)
        return list(chosen.values())

    def _read(self, child: _Child) -> None:
        data = os.read(child.output, 4096)
        *lines, child.rest = (child.rest + data).split(b"\n")
        trial = child.trial
        for line in lines:
            child.last = time.monotonic()
            if line.startswith(b"begin "):
                trial.by = line[6:].decode()
                trial.ran += 1
                trial.verdict = "running"
            else:
                trial.verdict = line.decode()
        if trial.verdict in ("survived", "not covered", "not installed"):
            trial.by = ""
        if not data:
            if trial.verdict == "running":
                trial.verdict = "killed"  # the process died
            child.last = -1

    def _end(self, child: _Child) -> None:
        trial = child.trial
        if trial.verdict == "running":
            trial.verdict = "timeout"
        with suppress(ProcessLookupError):
            os.killpg(child.process, signal.SIGKILL)
        os.waitpid(child.process, 0)
        os.close(child.output)
        trial.seconds = time.monotonic() - child.started
        line = f"{trial.number:4} {trial.verdict:13} {trial.seconds:5.1f} s {trial.ran:4} tests  {trial.by}\n"
        os.write(self._report, line.encode())


def _is_over(child: _Child) -> bool:
    return child.last < 0 or time.monotonic() - child.last > _PATIENCE


def run(trials: Sequence[Trial], jobs: int) -> None:
    """Run trials, and set their verdicts. Prints one line each."""
    named = {test.partition("::")[0] for trial in trials for test in trial.tests}
    files = sorted(name for name in named if (ROOT / name).exists())
    report = os.dup(2)
    options = ["-qq", "--no-summary", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler"]
    code = pytest.main([*options, *files], plugins=[Trials(trials, jobs, report)])
    os.close(report)
    if any(each.verdict == NOT_RUN for each in trials):
        sys.exit(f"the tests could not be collected: pytest ended with {code}")
