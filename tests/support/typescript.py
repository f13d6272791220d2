"""Compiles TypeScript with the compiler that `make test` installs in `tests/sdk`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_PACKAGES = Path(__file__).parent.parent / "sdk" / "node_modules"
_OPTIONS = ("--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--types", "node")


def check_types(folder: Path, *files: str) -> str:
    """Return the errors that `tsc --strict` finds in these files; none are an empty text."""
    if not shutil.which("npm"):
        pytest.skip("needs Node.js")
    tsc = ["node", _PACKAGES / "typescript" / "bin" / "tsc"]
    command = [*tsc, *_OPTIONS, "--typeRoots", _PACKAGES / "@types", *files]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False).stdout
