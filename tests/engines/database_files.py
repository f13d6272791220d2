"""Engines on a file, other processes on the same file, and files as earlier versions left them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emulator.engines import open_engine
from emulator.engines.engine import Engine
from engines import another_process

BROUGHT = {
    2: ("messages",),
    3: ("pools", "dead_pools", "lists", "dead_lists", "chunks", "handed", "rosters", "members", "dead_rosters"),
}
"""Which tables came with which format."""


def opened(path: Path, namespace: str = "main") -> Engine:
    return open_engine(f"sqlite://{path}", namespace=namespace)


@contextmanager
def process(task: str, path: Path, name: str, times: int) -> Iterator[subprocess.Popen[str]]:
    """Another process that is about to do its task; `go` lets it."""
    command = [sys.executable, another_process.__file__, task, str(path), name, str(times)]
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
    """Take from a file what formats after this one brought."""
    file = sqlite3.connect(path, isolation_level=None)
    later = [table for each, tables in BROUGHT.items() if each > version for table in tables]
    for table in later:
        file.execute(f"DROP TABLE {table}")
    file.execute(f"PRAGMA user_version = {version}")
    file.close()
