"""Links that another user has put next to the data, at names that extcli writes to. Their targets stay as they are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

PRECIOUS = "as before"
Plant = Callable[[Path, Path], None]


def by_symbolic_link(target: Path, link: Path) -> None:
    link.symlink_to(target)


def by_hard_link(target: Path, link: Path) -> None:
    os.link(target, link)


KINDS = pytest.mark.parametrize("plant", [by_symbolic_link, by_hard_link])


@pytest.fixture
def data(stopped: Path, tmp_path: Path) -> Path:
    """A data file that no service uses, without the file that a service locks."""
    copied = shutil.copytree(stopped, tmp_path / "data", ignore=shutil.ignore_patterns("*lock"))
    return Path(copied) / "data.db"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    file = tmp_path / "precious"
    file.write_text(PRECIOUS)
    return file


@KINDS
def test_a_backup_and_its_note_replace_links(extcli, data: Path, precious: Path, tmp_path: Path, plant: Plant):
    plant(precious, copy := tmp_path / "copy.db")
    plant(precious, note := Path(f"{data}-backup"))
    words = ("data", "backup", str(copy), "--data", f"sqlite://{data}")

    extcli(*words, exits=2)
    extcli(*words, "--force", exits=0)

    assert PRECIOUS == precious.read_text()
    assert not copy.is_symlink()
    assert str(copy) in note.read_text()


@KINDS
@pytest.mark.parametrize("end", ["lock", "wal", "shm", "journal"])
@pytest.mark.parametrize("command", ["forget-key", "restore", "backup", "serve"])
def test_no_command_writes_through_a_link(
    extcli, stopped: Path, data: Path, precious: Path, tmp_path: Path, plant: Plant, end: str, command: str
):
    (lock,) = stopped.glob("data.db-*lock")
    copy, url = tmp_path / "copy.db", f"sqlite://{data}"
    if command == "restore":
        extcli("data", "backup", str(copy), "--data", url, exits=0)
        Path(f"{data}-backup").unlink()
    plant(precious, link := data.with_name(lock.name if end == "lock" else f"data.db-{end}"))
    files = {"restore": [str(copy)], "backup": [str(tmp_path / "other.db")]}
    words = ["serve", "--port", "0"] if command == "serve" else ["data", command, *files.get(command, [])]
    is_unused = (command, end) == ("backup", "lock")
    done = extcli(*words, "--data", url)

    assert PRECIOUS == precious.read_text()
    assert (0 if is_unused else 2) == done.exit_code
    assert is_unused or f"{link} is a link" in done.stderr


def test_a_restore_keeps_the_former_data_beside_a_dangling_link(extcli, data: Path, tmp_path: Path, monkeypatch):
    extcli("data", "backup", str(tmp_path / "copy.db"), "--data", f"sqlite://{data}", exits=0)
    monkeypatch.setattr("extcli.clock.now", lambda: 1_795_386_186_999)
    (link := Path(f"{data}.before-restore-20261122T222306Z")).symlink_to(tmp_path / "nowhere")

    extcli("data", "restore", str(tmp_path / "copy.db"), "--data", f"sqlite://{data}", exits=0)

    assert not (tmp_path / "nowhere").exists()
    assert Path(f"{link}-2").is_file()
