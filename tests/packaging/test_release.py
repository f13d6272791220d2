"""`make release`: what it makes, and that a step that fails changes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).parent.parent.parent
FILES = (".gitignore", "CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml")
CHANGELOG = Path("CHANGELOG.md")
VARIABLES = {**os.environ, "PYTHONPATH": str(ROOT), "DOCKER_HOST": "tcp://127.0.0.1:1"}
"""Without Docker, also where it runs."""
PASSES, FAILS = (sys.executable, "-c", ""), (sys.executable, "-c", "raise SystemExit(1)")
"""Commands in place of `make check`, which CI runs by itself."""


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def release(folder: Path, version: str, check: tuple[str, ...] = PASSES) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "release.py", version, *check]
    return subprocess.run(command, cwd=folder, env=VARIABLES, capture_output=True, text=True, timeout=120, check=False)


def state(folder: Path) -> list[str]:
    """Return all that a release may change."""
    words = ("rev-parse HEAD", "status --porcelain --ignored", "tag --list", "worktree list", "branch --list")
    return [git(folder, *each.split()) for each in words]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with the sources of this checkout, and with a version 0.0.9 that was released."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for each in FILES:
        shutil.copy(ROOT / each, folder / each)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for name, value in (("name", "Tests"), ("email", "tests@example.com")):
        git(folder, "config", f"user.{name}", value)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Add the sources")
    git(folder, "tag", "v0.0.9")
    return folder


def test_a_release_sets_the_version_and_a_second_checkout_builds_the_same_files(project: Path, tmp_path: Path):
    done = release(project, "7.8.9")
    git(tmp_path, "clone", "--quiet", str(project), "elsewhere")
    again = "import pathlib as p, tools.release as r; r.build(p.Path('elsewhere'), p.Path('again').absolute(), '7.8.9')"
    subprocess.run([sys.executable, "-c", again], cwd=tmp_path, env=VARIABLES, check=True, timeout=60)

    assert 0 == done.returncode, done.stderr
    assert ["  git push origin main", "  git push origin v7.8.9"] == done.stdout.splitlines()[-2:]
    assert "no image: Docker is not running here" in done.stdout
    assert ["", git(project, "rev-parse", "HEAD")] == [
        git(project, "status", "--porcelain"),
        git(project, "rev-parse", "v7.8.9^{commit}"),
    ]
    assert '__version__ = "7.8.9"\n' in (project / "src/extcli/__init__.py").read_text()
    assert "## Unreleased\n\n## 7.8.9 - 20" in (project / CHANGELOG).read_text()
    names = ["extcli-7.8.9-py3-none-any.whl", "extcli-7.8.9.tar.gz"]
    for folder in (project / "dist", tmp_path / "again"):
        assert names == sorted(each.name for each in folder.iterdir())
    for name in names:
        assert (project / "dist" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        assert sha256((project / "dist" / name).read_bytes()).hexdigest() in done.stdout


def on_a_branch(project: Path) -> None:
    git(project, "switch", "--quiet", "--create", "mine")


def with_a_file(project: Path) -> None:
    (project / "new.txt").touch()


def without_entry(project: Path) -> None:
    (project / CHANGELOG).write_text("# Changelog\n\n## Unreleased\n\n## 0.0.9\n\n- The first.\n")
    git(project, "commit", "--quiet", "--all", "--message", "Empty the changelog")


def without_readme(project: Path) -> None:
    git(project, "rm", "--quiet", "README.md")
    git(project, "commit", "--quiet", "--message", "Remove what the build needs")


REFUSED: list[tuple[str, Callable[[Path], object] | None, tuple[str, ...], str]] = [
    ("", None, PASSES, "VERSION= is not a version of PEP 440, such as 0.2.0"),
    ("1.0-final", None, PASSES, "VERSION=1.0-final is not a version of PEP 440"),
    ("v1.0", None, PASSES, "VERSION=v1.0 is not in normal form: use 1.0"),
    ("0.0.9", None, PASSES, "VERSION=0.0.9 is not higher than the last tag, v0.0.9"),
    ("1.0", on_a_branch, PASSES, "the branch is mine: switch to main"),
    ("1.0", with_a_file, PASSES, "the tree has changes"),
    ("1.0", without_entry, PASSES, 'CHANGELOG.md has no entry 1.0, and nothing under "Unreleased"'),
    ("1.0", None, FAILS, "failed; nothing was changed"),
    ("1.0", without_readme, PASSES, "failed; nothing was changed"),
]
"""The version, what is wrong with the project, the check, and what the release says."""


def test_a_release_that_fails_says_why_and_changes_nothing(project: Path):
    start = git(project, "rev-parse", "HEAD")
    for version, spoil, check, reason in REFUSED:
        git(project, "switch", "--quiet", "main")
        git(project, "reset", "--quiet", "--hard", start)
        git(project, "clean", "--quiet", "-d", "--force")
        if spoil:
            spoil(project)
        before = state(project)

        refused = release(project, version, check)

        assert (1, True) == (refused.returncode, reason in refused.stderr), refused.stderr
        assert before == state(project)


def test_a_release_takes_an_entry_of_the_changelog_as_it_is(project: Path):
    entry = "# Changelog\n\n## Unreleased\n\n## 1.0 - 2026-01-02\n\n- All of it.\n"
    (project / CHANGELOG).write_text(entry)
    git(project, "commit", "--quiet", "--all", "--message", "Write the entry")

    assert 0 == release(project, "1.0").returncode
    assert entry == (project / CHANGELOG).read_text()


def test_the_version_has_one_place():
    assert ["version"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]
