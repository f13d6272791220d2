"""Writes the profiles file."""

from __future__ import annotations

import json
import os
from pathlib import Path


def config_file() -> Path:
    """Return the path of the profiles file in this test."""
    return Path(os.environ["EXTCLI_CONFIG"])


def write_profiles(text: str = "", **tables: dict[str, object]) -> Path:
    """Write the file: `text`, then a table for each profile. Return its path. Values are strings or booleans."""
    lines = [text]
    for name, table in tables.items():
        lines += [f"[profiles.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    config_file().write_text("\n".join([*lines, ""]))
    return config_file()
