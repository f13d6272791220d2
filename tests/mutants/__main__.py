"""Runs tests against mutants: `make mutants ARGS="[--part PART] [--number N] [--all [--record]] [--write]"`.

Without arguments, it runs each mutant of the list that was killed, first against the test that killed it, and fails if
one survives or its code is gone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from mutants.coverage_map import CoverageMap, record
from mutants.mutant_list import KILLED, VERDICTS, Located, Mutant, draw, judged, locate, read_list, update, write_list
from mutants.parts import PARTS
from mutants.trials import Trial, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--part", action="append", choices=PARTS, help="only mutants of this part")
    parser.add_argument("--number", action="append", type=int, help="only this mutant")
    parser.add_argument("--verdict", action="append", choices=VERDICTS, help="only mutants with this verdict")
    parser.add_argument("--all", action="store_true", help="also mutants that were not killed before")
    parser.add_argument("--record", action="store_true", help="first record which tests execute which lines")
    parser.add_argument("--write", action="store_true", help="write the verdicts to the list")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time; default 1")
    parser.add_argument(
        "--most", type=int, default=150, help="tests per mutant, the most specific ones; many lines have thousands"
    )
    parser.add_argument("--draw", metavar="COMMIT", help="write a new list, drawn from the sources of a commit")
    arguments = parser.parse_args()
    if arguments.draw:
        write_list(draw(arguments.draw))
        return
    if arguments.record:
        record(arguments.jobs)
    chosen = [
        each
        for each in read_list()
        if each.verdict != "retired"
        and (not arguments.part or each.part in arguments.part)
        and (not arguments.number or each.number in arguments.number)
        and (not arguments.verdict or each.verdict in arguments.verdict)
        and (arguments.all or arguments.number or arguments.verdict or each.verdict in KILLED)
    ]
    found = judge(chosen, arguments.jobs, arguments.most)
    if arguments.write:
        update(found)
    sys.exit(report(chosen, found))


def judge(chosen: Sequence[Mutant], jobs: int, most: int) -> list[Mutant]:
    """Run the tests against mutants, and return them with their verdicts."""
    started = time.monotonic()
    places = {each.number: locate(each) for each in chosen}
    coverage = _recorded()
    trials = {}
    for each in chosen:
        if place := places[each.number]:
            trials[each.number] = Trial(each.number, place, _tests_for(each, place, coverage, most))
    run([each for each in trials.values() if each.tests], jobs)
    control = Trial(0, None, sorted({each.by for each in trials.values() if each.by}))
    if control.tests:
        print("the tests that killed, without a mutant:", file=sys.stderr)
        run([control], 1)
    if control.tests and control.verdict != "survived":
        sys.exit(f"this test fails without a mutant: {control.by}")
    print(f"{len(trials)} mutants in {time.monotonic() - started:.0f} s")
    return [_with_verdict(each, trials.get(each.number)) for each in chosen]


def _with_verdict(mutant: Mutant, trial: Trial | None) -> Mutant:
    if trial is None:
        return judged(mutant, "gone")
    if not trial.tests:
        return judged(mutant, "not covered")
    return judged(mutant, trial.verdict, trial.by)


def _recorded() -> CoverageMap | None:
    try:
        return CoverageMap()
    except FileNotFoundError:
        print(
            "no recorded run, so only the files of the tests that killed are run; --record makes one", file=sys.stderr
        )
        return None


def _tests_for(mutant: Mutant, place: Located, coverage: CoverageMap | None, most: int) -> list[str]:
    """Return the tests to run: first that which killed it, then those that execute its lines or share its file."""
    tests = [mutant.by] if mutant.by else []
    covering = coverage.covering(place.path, place.site.first, place.site.last) if coverage else []
    tests += [each.id for each in covering[:most] if each.id not in tests]
    return tests if coverage or not tests else [*tests, mutant.by.partition("::")[0]]


def report(before: Sequence[Mutant], after: Sequence[Mutant]) -> int:
    """Print the counts by part, and each mutant that is not killed any more; return the exit code."""
    counts = Counter((each.part, each.verdict) for each in after)
    verdicts = [each for each in (*VERDICTS, "not installed") if any(counts[part, each] for part in PARTS)]
    print(f"{'':10}" + "".join(f"{each:>14}" for each in verdicts))
    for part in PARTS:
        print(f"{part:10}" + "".join(f"{counts[part, each]:14}" for each in verdicts))
    lost = [new for old, new in zip(before, after, strict=True) if old.verdict in KILLED and new.verdict not in KILLED]
    for each in lost:
        print(f"was killed, now {each.verdict}: {each}")
    return bool(lost)


if __name__ == "__main__":
    main()
