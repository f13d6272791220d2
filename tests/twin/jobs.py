"""Divides a comparison into jobs: each has services of its own, and several run at a time."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from twin import changes, commands, conversations, rest
from twin.credentials import extensions_file
from twin.environment import Version
from twin.host import Clock, Setup, running
from twin.report import Report

AT_ONCE = (os.cpu_count() or 1) + 1
"""Jobs at a time. One alone does not keep two cores busy, because its processes wait for each other."""


class Job(NamedTuple):
    """What is compared by itself."""

    versions: tuple[Version, Version]
    seed: int
    setup: Setup
    episodes: range = range(0)
    talks: range = range(0)
    lines: commands.Choice | None = None

    @property
    def title(self) -> str:
        """Its part of the whole, for people."""
        if self.lines:
            return f"commands, part {self.lines.part + 1} of {self.lines.parts}"
        numbers = {"episodes": self.episodes, "conversations": self.talks}
        shown = [f"{name} {each.start} to {each.stop - 1}" for name, each in numbers.items() if each]
        return f"{self.setup}, {', '.join(shown)}"

    def run(self) -> Report:
        """Compare, and return what was found."""
        began = time.monotonic()
        report = Report(changes.read())
        with tempfile.TemporaryDirectory(prefix="twin-") as name:
            folder = Path(name)
            if self.lines:
                commands.run(self.versions, folder, self.lines, report)
            else:
                self._talk(folder, report)
        report.seconds = time.monotonic() - began
        return report

    def _talk(self, folder: Path, report: Report) -> None:
        """Send calls and frames; then stop the services, and compare how they end."""
        clock = Clock(folder)
        (folder / "extensions.toml").write_text(extensions_file())
        (folder / "extensions.toml").chmod(0o600)
        options = ["--extensions", str(folder / "extensions.toml"), "--proxy", "127.0.0.1"]
        with running(self.versions, self.setup, clock, folder, *options) as pair:
            rest.run(pair, clock, self.setup, self.seed, self.episodes, report)
            conversations.run(pair, clock, self.setup, self.seed, self.talks, report)
            rest.compare_ends(pair, self.setup, report)


def _run(job: Job) -> Report:
    return job.run()


def run(jobs: Sequence[Job]) -> Iterator[tuple[Job, Report]]:
    """Run jobs, and yield each with its report as it ends."""
    if len(jobs) == 1:
        yield jobs[0], jobs[0].run()
        return
    with ProcessPoolExecutor(min(AT_ONCE, len(jobs)), multiprocessing.get_context("spawn")) as processes:
        futures = {processes.submit(_run, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            processes.shutdown(cancel_futures=True)


def parts(numbers: range, count: int) -> list[range]:
    """Divide numbers into this many ranges of about one length."""
    bounds = [numbers.start + len(numbers) * number // count for number in range(count + 1)]
    return [range(start, stop) for start, stop in itertools.pairwise(bounds)]
