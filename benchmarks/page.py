"""Writes the measured parts of docs/performance.md: `make bench-docs`.

Takes the results of the last runs into `benchmarks/measurements.json`, and writes the page from that.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from report import RESULTS, Result, Row, spread
from run import SOAK, SOURCES

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
MEASUREMENTS = Path(__file__).with_name("measurements.json")


def collect() -> list[Result]:
    """Replace the measurements that were run again, drop those that no longer exist, and return all."""
    known = msgspec.json.decode(MEASUREMENTS.read_bytes(), type=list[Result])
    new = [msgspec.json.decode(path.read_bytes(), type=Result) for path in sorted(RESULTS.glob("*.*.json"))]
    results = {result.name: result for result in (*known, *new)}
    kept = [results[name] for name in (*(source.name for source in SOURCES), SOAK) if name in results]
    MEASUREMENTS.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
    return kept


def machine(results: list[Result]) -> str:
    """Describe where and when the results were measured."""
    systems = {
        f"{one.cores} cores of {one.processor}, {one.memory_gib} GiB, {one.system}, Python {one.python}"
        for one in (result.machine for result in results)
    }
    commits = {result.machine.commit for result in results}
    days = {result.day for result in results}
    return f"Measured {_joined(days)} on {_joined(systems)}; commit {', '.join(sorted(commits))}."


def _joined(words: set[str]) -> str:
    return " and ".join(sorted(words))


def _by_number(row: Row) -> tuple[int, str]:
    return int(row.goal.rstrip("bs")), row.goal


def table(results: list[Result]) -> str:
    """Return all rows as a Markdown table, by the numbers of their goals."""
    lines = ["| Goal | Ratio | Median (range) | Must | Stretch | Noise | |", "|---|---|---|---|---|---|---|"]
    for row in sorted((row for result in results for row in result.rows), key=_by_number):
        sign = "" if row.higher_is_better else "≤ "
        cells = (
            row.goal,
            row.name,
            f"{row.median:.4g}" if len(row.values) == 1 else spread(row.values),
            f"{sign}{row.must:g}",
            f"{sign}{row.stretch:g}",
            spread(row.noise) if row.noise else "",
            f"{row.verdict}; {row.warning}" if row.warning else row.verdict,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def fill(text: str, name: str, content: str) -> str:
    """Return a document with new content between the comments `NAME` and `/NAME`."""
    pattern = re.compile(rf"(<!-- {name}: [^\n]* -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    assert pattern.search(text), f"no part {name}"
    return pattern.sub(lambda match: f"{match[1]}\n{content}\n\n{match[2]}", text)


if __name__ == "__main__":
    found = collect()
    PAGE.write_text(fill(fill(PAGE.read_text(), "machine", machine(found)), "goals", table(found)))
