"""The parts of the code that are mutated, and the tests that are run against them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "src"
BUILD: Final = ROOT / "build" / "mutants"
"""What a recorded run leaves; git ignores it."""
PARTS: Final = {
    "polls": (
        "emulator/features/votes/*.py",
        "emulator/features/ranking*/*.py",
        "emulator/features/ranking*.py",
        "emulator/features/accumulation*/*.py",
        "emulator/features/accumulation*.py",
    ),
    "records": (
        "emulator/features/stores/*.py",
        "emulator/features/codes/*.py",
        "emulator/features/pins/*.py",
        "emulator/features/identity/*.py",
        "emulator/features/identity*.py",
    ),
    "messages": (
        "emulator/features/broadcast/*.py",
        "emulator/features/datastream*.py",
        "emulator/features/datastream/*.py",
    ),
    "trivia": ("emulator/features/trivia/*.py",),
    "purchases": ("emulator/features/transactions*.py",),
    "auth": ("emulator/auth/*.py",),
    "realtime": ("emulator/realtime/*.py",),
    "control": ("emulator/control/**/*.py", "emulator/namespaces/*.py", "emulator/core/parity.py"),
    "requests": ("emulator/http/*.py", "emulator/core/wire/*.py", "emulator/core/limits*.py"),
    "sqlite": ("emulator/storage/sqlite/**/*.py",),
    "output": ("extcli/output/*.py",),
    "bulk": ("extcli/bulk/*.py", "extcli/codes/*.py"),
}
"""Files below `src`."""
DRAWN: Final = {
    "polls": 45,
    "records": 70,
    "messages": 15,
    "trivia": 20,
    "purchases": 20,
    "auth": 30,
    "realtime": 40,
    "control": 50,
    "requests": 35,
    "sqlite": 35,
    "output": 20,
    "bulk": 20,
}
"""How many mutants of each part are in the list."""
TESTS: Final = (
    "tests/rules",
    "tests/features",
    "tests/engines/test_sqlite*.py",
    "tests/cli/test_*.py",
    "tests/production",
    "tests/realtime",
    "tests/surface",
    "tests/web",
)
"""Tests that run the code in their own process, most of them in well under a second."""


def files_of(part: str, root: Path = SOURCES) -> Iterator[Path]:
    """Yield the files of a part in order."""
    for pattern in PARTS[part]:
        yield from sorted(root.glob(pattern))


def tests() -> list[str]:
    """Return the files and folders of tests."""
    return [str(path) for pattern in TESTS for path in sorted(ROOT.glob(pattern))]
