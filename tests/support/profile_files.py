"""The file of profiles, as a test writes it."""

from __future__ import annotations

import json
import os
from pathlib import Path


def config_file() -> Path:
    """Where the program looks for profiles in this test."""
    return Path(os.environ["EXTCLI_CONFIG"])


def write_profiles(text: str = "", **tables: dict[str, object]) -> Path:
    """Write the file: a text, and a table for each name. JSON is TOML, of text and of true and false."""
    lines = [text]
    for name, table in tables.items():
        lines += [f"[profiles.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    config_file().write_text("\n".join([*lines, ""]))
    return config_file()
