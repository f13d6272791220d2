"""Engines on a file."""

from __future__ import annotations

from pathlib import Path

from emulator.storage.engine import Engine
from emulator.storage.opening import open_engine


def opened(path: Path, namespace: str = "main") -> Engine:
    return open_engine(f"sqlite://{path}", namespace=namespace)
