"""`extcli new`: the projects that it makes have tests that pass, and that fail if the rule of the poll is broken."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from support.exec_process import run_exec
from support.plugin_runs import PLAIN, ROOT, declare_plugin

BACKENDS = ("node", "python")
RULES = {
    "node": ("leaders.length === 1 ?", "leaders.length > 0 ?"),
    "python": ("len(leaders) == 1", "len(leaders) > 0"),
}
"""Of each backend: that a tie has no winner, and the same without that rule."""
SOURCES = {"node": "backend.mjs", "python": "backend.py"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which `extcli new` makes projects."""
    (tmp_path / "projects").mkdir()
    monkeypatch.chdir(tmp_path / "projects")
    return tmp_path / "projects"


def run_tests(project: Path, backend: str, *options: str) -> tuple[int, str]:
    """Run the tests of a project as its README says; return the exit code, and all that was printed."""
    if backend == "node" and not shutil.which("npm"):
        pytest.skip("needs Node.js")
    command = ["npm", "test"] if backend == "node" else [sys.executable, "-m", "pytest", "-q", *PLAIN]
    path = os.pathsep.join([str(declare_plugin(project.parent)), str(ROOT / "src")])
    variables = {"PYTHONPATH": path, "HOME": str(project.parent), "npm_config_update_notifier": "false"}
    code, printed, log = run_exec(
        "--quiet", "--fail-on", "parity", *options, "--", *command, env=variables, cwd=project
    )
    return code, printed + log


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_tests_of_a_new_project_pass_and_production_takes_its_tokens(extcli, folder: Path, backend: str) -> None:
    place = ("--channel", "777", "--client-id", "other", "--url", "http://127.0.0.1:9000")
    extcli("new", "boss", "--backend", backend, *place)

    code, printed = run_tests(folder / "boss", backend, "--env", "EXTCLI_CHANNEL=7")

    assert (0, True) == (code, bool(re.search(r"4 passed|# pass 4", printed))), printed


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_tests_of_a_new_project_fail_if_a_tie_has_a_winner(extcli, folder: Path, backend: str) -> None:
    extcli("new", "boss", "--backend", backend)
    source = folder / "boss" / SOURCES[backend]
    source.write_text(source.read_text().replace(*RULES[backend]))

    code, printed = run_tests(folder / "boss", backend)

    assert (1, True) == (code, bool(re.search(r"1 failed, 3 passed|# pass 3\n# fail 1", printed))), printed


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_files_of_a_project_have_its_place_and_what_connect_prints(extcli, folder: Path, backend: str) -> None:
    place = ("--client-id", "o'th\"er", "--channel", 'SERVICE"<7', "--url", "http://127.0.0.1:9000")
    extcli("new", "boss", "--backend", backend, *place)

    printed = {"sign.py": ("python", "--sign")}
    if backend == "node":
        printed = {
            "sign.mjs": ("node", "--sign"),
            "sign.d.mts": ("node-types", "--sign"),
            "tests/extcli.mjs": ("node-test",),
            "tests/extcli.d.mts": ("node-types",),
        }
    for path, words in printed.items():
        assert (folder / "boss" / path).read_text() == extcli("connect", *words, *place).stdout
    for page in (folder / "boss/pages").glob("*.html"):
        assert "http://127.0.0.1:9000/_emulator/sdk.js" in page.read_text()
        assert 'th&quot;er" data-channel-id="SERVICE&quot;&lt;7"' in page.read_text()
    readme = (folder / "boss/README.md").read_text()
    assert "serve --extensions extensions.toml --port 9000\n" in readme
    assert not re.findall(r"\b(?:NAME|PORT|OPTIONS|CLIENT_ID|CHANNEL|TEST|RUN|NEEDS|BACKEND|SIGNER)\b", readme)


def test_new_changes_no_existing_folder(extcli, folder: Path) -> None:
    existing = [folder / name for name in ("file", "folder", "link")]
    existing[0].write_text("mine")
    existing[1].mkdir()
    existing[2].symlink_to(folder / "elsewhere")

    for each in existing:
        extcli("new", each.name, exits=2)

    assert existing == sorted(folder.iterdir())
    assert [] == list(existing[1].iterdir())


def test_a_name_that_is_not_one_of_a_folder_is_refused(extcli, folder: Path) -> None:
    for name in ("", ".", "a/b", "-x", "../boss", "x" * 65, "a b", "boss.", "CON", "com1", "nul.tar.gz"):
        assert "NAME" in extcli("new", "--", name, exits=2).stderr, name
    assert [] == list(folder.iterdir())


def test_nothing_stays_of_a_project_that_cannot_be_written(
    extcli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text = Path.write_text

    def fail_in_the_middle(path: Path, *args: str, **settings: str) -> int:
        if path.name == "backend.mjs":
            raise OSError(28, "No space left on device")
        return write_text(path, *args, **settings)

    extcli("new", "boss", env={"EXTCLI_URL": "nonsense"}, exits=2)
    monkeypatch.setattr(Path, "write_text", fail_in_the_middle)
    extcli("new", "boss", exits=2)

    assert [] == list(folder.iterdir())
