"""Compares the working tree with an earlier version: `PYTHONPATH=tests python -m twin [--quick] [--seed N]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from twin import changes, commands, conversations, rest
from twin.environment import Missing, Version, reference, working_tree
from twin.host import SETUPS, Setup
from twin.report import Report

PARTS = ("rest", "conversations", "commands")
CALLS, QUICK_CALLS = 50_000, 5_000
CONVERSATIONS, QUICK_CONVERSATIONS = 5_000, 300


def main(arguments: list[str]) -> int:
    """Run the comparison and return the exit code: 0 without unlisted differences, 1 with some, 2 if it cannot run."""
    chosen = _parser().parse_args(arguments)
    try:
        report = Report(changes.read(), verbose=chosen.verbose)
        versions = reference(), working_tree(chosen.source)
        _run(versions, chosen, report)
    except Missing as error:
        sys.stderr.write(f"twin: {error}\n")
        return 2
    return report.finish(
        whole=not (chosen.quick or chosen.only or chosen.setup or chosen.match or chosen.episode is not None)
    )


def _run(versions: tuple[Version, Version], chosen: argparse.Namespace, report: Report) -> None:
    parts = chosen.only or PARTS
    for setup in SETUPS:
        if chosen.setup and str(setup) not in chosen.setup:
            continue
        for part in ("rest", "conversations"):
            if part in parts:
                _timed(report, f"{part} {setup}", versions, setup, chosen)

    if "commands" in parts and not chosen.setup:
        _timed(report, "commands", versions, SETUPS[0], chosen)


def _timed(
    report: Report, title: str, versions: tuple[Version, Version], setup: Setup, chosen: argparse.Namespace
) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="twin-") as folder:
        if title.startswith("rest"):
            total = (chosen.calls or (QUICK_CALLS if chosen.quick else CALLS)) // len(SETUPS)
            episodes = range(max(1, -(-total // rest.CALLS)))
            if chosen.episode is not None:
                episodes = range(chosen.episode, chosen.episode + 1)
            rest.run(versions, setup, Path(folder), chosen.seed, episodes, report)
        elif title.startswith("conversations"):
            total = (chosen.conversations or (QUICK_CONVERSATIONS if chosen.quick else CONVERSATIONS)) // len(SETUPS)
            numbers = range(max(1, total)) if chosen.episode is None else range(chosen.episode, chosen.episode + 1)
            conversations.run(versions, setup, Path(folder), chosen.seed, numbers, report)
        elif title == "commands":
            share = commands.QUICK_SHARE if chosen.quick else 1.0
            commands.run(versions, Path(folder), commands.Choice(chosen.seed, share, chosen.match), report)
    report.say(f"{title}: {time.monotonic() - began:.0f} s")


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
    parser.add_argument("--verbose", action="store_true", help="print each step")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
