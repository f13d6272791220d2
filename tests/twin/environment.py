"""The two versions: a wheel of a fixed commit in an environment of its own, and the working tree."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).parents[2]
REFERENCE = "47019c410021209fbf9be65f6d96740e8106274c"
"""The commit that the working tree is compared with: the last one before the present work. Written here only."""


class Missing(Exception):
    """Something that the comparison needs is absent; the message says what to do."""


@dataclass(frozen=True)
class Version:
    """A version of the program, as a Python that can import it."""

    name: str
    python: Path
    source: Path | None = None
    """A folder with the packages, imported before the packages of the environment."""

    def variables(self) -> dict[str, str]:
        """Return the environment of its processes: little, so that both versions run alike."""
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "SYSTEMROOT") if name in os.environ}
        fixed = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", "COLUMNS": "80", "NO_COLOR": "1"}
        path = {"PYTHONPATH": str(self.source)} if self.source else {}
        # Both versions compile into the cache of their own sources: a copy of the sources would be written to.
        return kept | fixed | path


def working_tree(source: Path | None = None) -> Version:
    """Return the version in the working tree, or in another folder of sources."""
    return Version("working tree", Path(sys.executable), source or ROOT / "src")


def reference() -> Version:
    """Return the version of the fixed commit. Builds its environment unless it exists; raises `Missing`."""
    constraints = _installed_versions()
    digest = hashlib.sha256(constraints.encode()).hexdigest()[:8]
    folder = Path(sys.prefix) / "twin" / f"{REFERENCE[:12]}-{digest}"
    # Two tests may need it at once.
    with FileLock(Path(sys.prefix) / "twin.lock"):
        if not (folder / "complete").exists():
            _build(folder, constraints)
    return Version("reference", folder / "bin" / "python")


def documented_commands() -> str:
    """Return the page about all commands, as of the fixed commit."""
    _require_commit()
    return _run("git", "show", f"{REFERENCE}:docs/cli.md")


def _build(folder: Path, constraints: str) -> None:
    _require_commit()
    sys.stderr.write(f"building {REFERENCE[:12]} into {folder} (about a minute)\n")
    shutil.rmtree(folder.parent, ignore_errors=True)  # of earlier dependencies
    _run(sys.executable, "-m", "venv", str(folder))
    with tempfile.TemporaryDirectory() as scratch:
        wheel = _wheel(Path(scratch))
        limits = Path(scratch, "constraints.txt")
        limits.write_text(constraints)
        _run(str(folder / "bin" / "python"), *_PIP, "install", "--constraint", str(limits), str(wheel))
    (folder / "complete").touch()


_PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")


def _require_commit() -> None:
    known = subprocess.run(["git", "cat-file", "-e", f"{REFERENCE}^{{commit}}"], cwd=ROOT, capture_output=True)
    if known.returncode:
        raise Missing(f"the commit {REFERENCE[:12]} is not in this clone: run `git fetch`, with --unshallow if needed")


def _wheel(scratch: Path) -> Path:
    archive, source = scratch / "source.tar", scratch / "source"
    _run("git", "archive", "--output", str(archive), REFERENCE)
    source.mkdir()
    _run("tar", "-xf", str(archive), "-C", str(source))
    _run(sys.executable, *_PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", str(scratch), str(source))
    (wheel,) = scratch.glob("*.whl")
    return wheel


def _installed_versions() -> str:
    """Return the versions of all packages of this environment, as constraints of pip."""
    frozen = _run(sys.executable, *_PIP, "freeze", "--exclude-editable")
    return "".join(f"{line}\n" for line in frozen.splitlines() if "==" in line and not line.startswith("extcli"))


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"{' '.join(command[:6])} failed:\n{done.stderr.strip()}")
    return done.stdout
