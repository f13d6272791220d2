"""The five parts of the code that are mutated, and the tests that are run against them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "src"
BUILD: Final = ROOT / "build" / "mutants"
"""What a recorded run leaves; git ignores it."""
PARTS: Final = {
    "rules": ("emulator/features/*/rules.py", "emulator/control/*/rules.py"),
    "services": ("emulator/features/*/service.py", "emulator/control/*/service.py"),
    "auth": ("emulator/auth/*.py",),
    "sqlite": ("emulator/engines/sqlite/**/*.py",),
    "bulk": ("extcli/bulk/*.py",),
}
"""Files below `src`."""
DRAWN: Final = {"rules": 100, "services": 120, "auth": 40, "sqlite": 100, "bulk": 40}
"""How many mutants of each part are in the list."""
TESTS: Final = (
    "tests/rules",
    "tests/features",
    "tests/engines/test_sqlite*.py",
    "tests/cli/test_bulk*.py",
    "tests/production",
    "tests/realtime/test_socket_poll*.py",
    "tests/surface/test_specification.py",
)
"""Tests that run the code in their own process, most of them in well under a second."""


def files_of(part: str, root: Path = SOURCES) -> Iterator[Path]:
    """Yield the files of a part in order."""
    for pattern in PARTS[part]:
        yield from sorted(root.glob(pattern))


def tests() -> list[str]:
    """Return the files and folders of tests."""
    return [str(path) for pattern in TESTS for path in sorted(ROOT.glob(pattern))]
