"""Compares the working tree with an earlier version: `PYTHONPATH=tests python -m twin [--quick] [--seed N]`."""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

from twin import changes, commands, jobs, rest
from twin.environment import Missing, Version, reference, working_tree
from twin.host import SETUPS
from twin.jobs import Job
from twin.report import Report

PARTS = ("rest", "conversations", "commands")
CALLS, QUICK_CALLS = 50_000, 5_000
CONVERSATIONS, QUICK_CONVERSATIONS = 5_000, 300
DIVIDED, QUICK_DIVIDED = 2, 1
"""Jobs of each setup."""
COMMANDS, QUICK_COMMANDS = 4, 2
"""Jobs that run commands."""


def main(arguments: list[str]) -> int:
    """Run the comparison and return the exit code: 0 without unlisted differences, 1 with some, 2 if it cannot run."""
    chosen = _parser().parse_args(arguments)
    began, used = time.monotonic(), _used()
    try:
        report = Report(changes.read())
        versions = reference(), working_tree(chosen.source)
        for job, found in jobs.run(_jobs(versions, chosen)):
            report.add(job.title, found)
    except Missing as error:
        sys.stderr.write(f"twin: {error}\n")
        return 2
    report.seconds, report.processor_seconds = time.monotonic() - began, _used() - used
    return report.finish(
        whole=not (chosen.quick or chosen.only or chosen.setup or chosen.match or chosen.episode is not None)
    )


def _jobs(versions: tuple[Version, Version], chosen: argparse.Namespace) -> list[Job]:
    """Return the jobs, those that take longest first."""
    wanted = chosen.only or PARTS
    setups = [each for each in reversed(SETUPS) if not chosen.setup or str(each) in chosen.setup]
    calls = (chosen.calls or (QUICK_CALLS if chosen.quick else CALLS)) // len(SETUPS)
    talks = -(-(chosen.conversations or (QUICK_CONVERSATIONS if chosen.quick else CONVERSATIONS)) // len(SETUPS))
    episodes, numbers = range(max(1, -(-calls // rest.CALLS))), range(max(1, talks))
    count = 1 if len(episodes) == 1 else QUICK_DIVIDED if chosen.quick else DIVIDED
    if chosen.episode is not None:
        episodes = numbers = range(chosen.episode, chosen.episode + 1)
        count = 1
    found = []
    if "commands" in wanted and not chosen.setup:
        share = commands.QUICK_SHARE if chosen.quick else 1.0
        number = 1 if chosen.match else QUICK_COMMANDS if chosen.quick else COMMANDS
        for part in range(number):
            lines = commands.Choice(chosen.seed, share, chosen.match, part, number)
            found.append(Job(versions, chosen.seed, SETUPS[0], lines=lines))
    if "rest" in wanted or "conversations" in wanted:
        divided = [
            jobs.parts(each if part in wanted else range(0), count)
            for part, each in (("rest", episodes), ("conversations", numbers))
        ]
        found += [Job(versions, chosen.seed, setup, *both) for setup in setups for both in zip(*divided, strict=True)]
    return found


def _used() -> float:
    """Return the seconds that this process and its ended children have used the processor."""
    both = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="twin", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; repeatable")
    parser.add_argument(
        "--setup", action="append", choices=[str(each) for each in SETUPS], help="an engine; repeatable"
    )
    parser.add_argument("--episode", type=int, help="only the episode with this number")
    parser.add_argument("--calls", type=int, help="REST calls of all engines together")
    parser.add_argument("--conversations", type=int, help="conversations on all engines together")
    parser.add_argument("--match", default="", help="only command lines that contain this text")
    parser.add_argument("--source", type=Path, help="a folder of sources in place of src/")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
