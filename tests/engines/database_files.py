"""Engines on a file, other processes on the same file, and files of older formats."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emulator.engines.engine import Engine
from emulator.engines.opening import open_engine
from engines import child_process

TABLES_ADDED = {
    2: ("messages",),
    3: ("pools", "dead_pools", "lists", "dead_lists", "chunks", "handed", "rosters", "members", "dead_rosters"),
    4: ("families", "dead_families", "spent"),
}
"""By the format that added them."""
_UNCHANGED = {
    4: (
        "ALTER TABLE handed ADD COLUMN sum INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX handed_by_sum ON handed (root, sum)",
    ),
    6: ("ALTER TABLE marks DROP COLUMN whole", "ALTER TABLE ballots DROP COLUMN latest"),
    5: ("DROP INDEX ballots_by_channel", "DROP INDEX logs_by_channel"),
}
"""The statements that undo the changes of a format to earlier tables."""


def opened(path: Path, namespace: str = "main") -> Engine:
    return open_engine(f"sqlite://{path}", namespace=namespace)


@contextmanager
def process(task: str, path: Path, name: str, times: int) -> Iterator[subprocess.Popen[str]]:
    """Start a process that waits for `go`, and then does its task."""
    command = [sys.executable, child_process.__file__, task, str(path), name, str(times)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout
            assert running.stdout.readline() == "ready\n"
            yield running
        finally:
            running.kill()


def go(*processes: subprocess.Popen[str]) -> None:
    for each in processes:
        assert each.stdin
        each.stdin.write("\n")
        each.stdin.flush()


def make_older(path: Path, version: int) -> None:
    """Turn a file into one of an older format."""
    file = sqlite3.connect(path, isolation_level=None)
    later = [table for each, tables in TABLES_ADDED.items() if each > version for table in tables]
    for each in (each for number, some in _UNCHANGED.items() if number > version for each in some):
        file.execute(each)
    for table in later:
        file.execute(f"DROP TABLE {table}")
    file.execute(f"PRAGMA user_version = {version}")
    file.close()
