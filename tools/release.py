"""Makes a release: `python tools/release.py 0.2.0 COMMAND…`, where the command checks the tree. Publishes nothing.

It works in a checkout of its own, and moves the branch when everything is built. So a failed step leaves the tree as it
was.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from packaging.version import InvalidVersion, Version

BRANCH = "main"
VERSION_FILE = Path("src/extcli/__init__.py")
CHANGELOG = Path("CHANGELOG.md")


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> str:
    """Run a command and return what it prints; its errors go to the terminal."""
    done = subprocess.run(command, cwd=cwd, env=os.environ | variables, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"release: {' '.join(map(str, command))} failed; nothing was changed")
    return done.stdout.strip()


def problem_of(version: str) -> str:
    """Return why this version cannot be released from this tree, or an empty text."""
    try:
        wanted = Version(version)
    except InvalidVersion:
        return f"VERSION={version} is not a version of PEP 440, such as 0.2.0"
    tags = [Version(tag[1:]) for tag in run("git", "tag", "--list", "v[0-9]*").split()]
    branch = run("git", "branch", "--show-current")
    if str(wanted) != version or wanted.local:
        return f"VERSION={version} is not in normal form: use {wanted.public}"
    if tags and wanted <= max(tags):
        return f"VERSION={version} is not higher than the last tag, v{max(tags)}"
    if branch != BRANCH:
        return f"the branch is {branch or 'detached'}: switch to {BRANCH}"
    if run("git", "status", "--porcelain"):
        return "the tree has changes: commit or remove them"
    return ""


def released(changelog: str, version: str, day: str) -> str:
    """Return the changelog with an entry of this version: the one that it has, or what is under "Unreleased"."""
    if re.search(rf"^## {re.escape(version)}(?= |$)", changelog, re.MULTILINE):
        return changelog
    if not re.search(r"^## Unreleased\n+[^#\s]", changelog, re.MULTILINE):
        sys.exit(f'release: {CHANGELOG} has no entry {version}, and nothing under "Unreleased"; nothing was changed')
    return changelog.replace("## Unreleased\n", f"## Unreleased\n\n## {version} - {day}\n", 1)


def build(tree: Path, into: Path, version: str) -> None:
    """Build wheel, source distribution and image of a checkout. Equal commits give equal files."""
    seconds = run("git", "show", "--no-patch", "--format=%ct", cwd=tree)
    hatchling = (sys.executable, "-m", "hatchling", "build", "--directory", into)
    run(*hatchling, cwd=tree, SOURCE_DATE_EPOCH=seconds)
    for each in sorted(into.iterdir()):
        print(f"dist/{each.name}  sha256 {sha256(each.read_bytes()).hexdigest()}")
    if not shutil.which("docker") or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        print("no image: Docker is not running here")
        return
    label = f"org.opencontainers.image.version={version}"
    run("docker", "build", "--quiet", "--label", label, "--tag", f"extcli:{version}", tree)


def main(version: str, *check: str) -> None:
    """Release this version of the current folder."""
    if problem := problem_of(version):
        sys.exit(f"release: {problem}")
    if subprocess.run(check, check=False).returncode:
        sys.exit(f"release: {' '.join(check)} failed; nothing was changed")
    with tempfile.TemporaryDirectory() as folder:
        tree, built = Path(folder) / "tree", Path(folder) / "dist"
        run("git", "worktree", "add", "--quiet", "--detach", tree)
        try:
            text = (tree / VERSION_FILE).read_text()
            (tree / VERSION_FILE).write_text(re.sub(r'(?<=__version__ = ")[^"]+', version, text))
            changelog = (tree / CHANGELOG).read_text()
            (tree / CHANGELOG).write_text(released(changelog, version, f"{datetime.now(UTC):%Y-%m-%d}"))
            run("git", "commit", "--quiet", "--all", "--allow-empty", "--message", f"Release {version}", cwd=tree)
            build(tree, built, version)
            commit = run("git", "rev-parse", "HEAD", cwd=tree)
        finally:
            run("git", "worktree", "remove", "--force", tree)
        run("git", "tag", "--annotate", "--message", f"extcli {version}", f"v{version}", commit)
        try:
            run("git", "merge", "--quiet", "--ff-only", commit)
        except SystemExit:
            run("git", "tag", "--delete", f"v{version}")
            raise
        Path("dist").mkdir(exist_ok=True)
        for each in built.iterdir():
            shutil.copy(each, "dist")
    print(f"tagged v{version}. Its tests run in CI. To publish, when they have passed:")
    print(f"  git push origin {BRANCH}\n  git push origin v{version}")


if __name__ == "__main__":
    main(*sys.argv[1:])
