"""Runs pytest in a process of its own, with the plugin as an installed package declares it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parent.parent.parent
TIMEOUT = 120
PLAIN = [f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "faker", "anyio", "platformdirs")]
"""Leaves out plugins that take time to load and that no test here needs."""


@dataclass(frozen=True)
class PytestRun:
    """A run that has ended."""

    exit_code: int
    output: str

    @property
    def outcomes(self) -> dict[str, int]:
        """Return the counts of the last line, for example `{"passed": 2, "failed": 1}`."""
        last = self.output.strip().splitlines()[-1]
        return {
            name.rstrip("s") if name == "errors" else name: int(n) for n, name in re.findall(r"(\d+) ([a-z]+)", last)
        }


def declare_plugin(folder: Path) -> Path:
    """Write the entry points of pyproject.toml as an installed package has them, and return their folder.

    An environment that was made before the plugin does not know it.
    """
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    info = folder / "site" / "extcli_of_the_checkout-0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extcli-of-the-checkout\nVersion: 0\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in declared.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return info.parent


def run_pytest(folder: Path, *args: str, files: dict[str, str] | None = None, **variables: str) -> PytestRun:
    """Run pytest in a folder with these files. `test` is the file `test_extension.py`, `conftest` `conftest.py`."""
    names = {"test": "test_extension.py", "conftest": "conftest.py"}
    for name, text in (files or {}).items():
        (folder / names.get(name, name)).write_text(dedent(text))
    path = os.pathsep.join([str(declare_plugin(folder)), str(ROOT / "src")])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EXTCLI_", "PYTEST_"))}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *PLAIN, "--rootdir", str(folder), *args],
        cwd=folder,
        env={**kept, "PYTHONPATH": path, "NO_COLOR": "1", **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    return PytestRun(result.returncode, result.stdout + result.stderr)
