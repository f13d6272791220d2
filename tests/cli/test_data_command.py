"""`extcli data`: back up, verify, restore and describe a data file."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.storage.sqlite.tables import FORMAT
from extcli import __version__
from support.process import ServerProcess, server_process


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


@pytest.fixture
def stored(stopped: Path, data: Path) -> str:
    """The URL of the data file, which no service uses."""
    shutil.copytree(stopped, data.parent, dirs_exist_ok=True)
    return f"sqlite://{data}"


@pytest.fixture
def served(stored: str) -> Iterator[ServerProcess]:
    """A service on the file."""
    with server_process("--data", stored) as running:
        yield running


def votes(served: ServerProcess) -> int:
    answer = served.client("viewer", user="5552", channel="1001").get("vote?id=lunch")
    return int(answer.raise_for_status().json()["stats"]["count"])


def test_a_running_service_is_backed_up_and_keeps_its_file_and_its_key(extcli, served, data: Path, tmp_path: Path):
    copy, url = tmp_path / "copy.db", f"sqlite://{data}"
    result = extcli("data", "backup", str(copy), "--data", url, "-o", "json", exits=0)

    assert {"poll": 1, "viewer_state": 1}.items() <= result.json["environments"][0]["counts"].items()
    assert (FORMAT, copy.stat().st_size) == (result.json["format"], result.json["bytes"])
    assert 0o600 == copy.stat().st_mode & 0o777
    extcli("data", "verify", str(copy), exits=0)
    assert ["copy.db"] == [path.name for path in tmp_path.iterdir() if "copy" in path.name]
    in_use = f"in use by another extcli serve, process {served.process.pid}; stop it first\n"
    assert "is the data file itself" in extcli("data", "backup", str(data), "--data", url, "--force", exits=2).stderr
    assert in_use in extcli("data", "restore", str(copy), "--data", url, exits=2).stderr
    assert in_use in extcli("data", "forget-key", "--data", url, exits=2).stderr
    assert 1 == votes(served)
    served.stop(signal.SIGTERM)
    assert f"deleted 1 signing key from {data}\n" == extcli("data", "forget-key", "--data", url).stderr
    assert f"{data} has no signing key\n" == extcli("data", "forget-key", "--data", url).stderr


def test_a_backup_replaces_a_file_only_with_force(extcli, stored, data: Path, tmp_path: Path):
    copy = tmp_path / "copy.db"
    copy.write_text("notes")

    refused = extcli("data", "backup", str(copy), "--data", f"sqlite://{data}")

    assert (2, "notes") == (refused.exit_code, copy.read_text())
    assert "exists already; choose another name, or replace it with --force" in refused.stderr
    assert 0 == extcli("data", "backup", str(copy), "--data", f"sqlite://{data}", "--force").exit_code
    assert 0 == extcli("data", "verify", str(copy)).exit_code


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_backup_is_never_put_next_to_the_log_of_another_database(extcli, stored, data: Path, tmp_path: Path, force):
    copy, log = tmp_path / "copy.db", tmp_path / "copy.db-wal"
    with contextlib.closing(sqlite3.connect(copy)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE notes (text)")
        written = log.read_bytes()
    log.write_bytes(written)
    for each in [] if force else [copy]:
        each.unlink()

    refused = extcli("data", "backup", str(copy), "--data", f"sqlite://{data}", *force)

    expected = f"extcli: {log} exists, so a program uses {copy} or was killed; choose another name\n"
    assert (2, expected) == (refused.exit_code, refused.stderr)


@pytest.mark.parametrize(
    ("verb", "url", "advice"),
    [
        ("backup", None, "give --data URL, or set EXTCLI_SERVE_DATA"),
        ("restore", "sqlite://", "extcli snapshot"),
        ("backup", "redis://localhost:6379/0", "BGSAVE"),
        ("restore", "mysql://localhost", "accepted are"),
    ],
)
def test_data_that_is_not_in_a_file_is_refused_with_advice(extcli, tmp_path: Path, verb: str, url: str | None, advice):
    options = () if url is None else ("--data", url)

    result = extcli("data", verb, str(tmp_path / "copy.db"), *options, exits=2)

    assert advice in result.stderr
    assert not (tmp_path / "copy.db").exists()


def test_restore_refuses_while_another_program_uses_the_file(extcli, stored, data: Path, tmp_path: Path):
    extcli("data", "backup", str(tmp_path / "copy.db"), "--data", stored)
    shell = sqlite3.connect(data, isolation_level=None)
    shell.execute("BEGIN")
    shell.execute("SELECT count(*) FROM entries").fetchone()

    result = extcli("data", "restore", str(tmp_path / "copy.db"), "--data", f"sqlite://{data}")
    shell.close()

    assert 2 == result.exit_code
    assert "another program uses it" in result.stderr
    assert not list(tmp_path.glob("*before-restore*"))


def test_a_restore_keeps_the_former_data_and_can_be_undone(extcli, served, data: Path, tmp_path: Path):
    copy, url = tmp_path / "copy.db", f"sqlite://{data}"
    extcli("data", "backup", str(copy), "--data", url)
    served.client("viewer", user="7", channel="1001").post("vote?id=lunch", json={"value": 1}).raise_for_status()
    os.kill(served.process.pid, signal.SIGKILL)  # the log of the file stays next to it
    served.process.wait()

    result = extcli("data", "restore", str(copy), "--data", url, exits=0)

    (former,) = tmp_path.glob("data.db.before-restore-*")
    assert 1 == extcli("data", "info", str(data), "-o", "json").json["environments"][0]["counts"]["poll"]
    (undo,) = [line.split()[1:] for line in result.stderr.splitlines() if line.startswith("  extcli data restore")]
    assert str(former) in undo
    extcli(*undo, exits=0)
    with server_process("--data", url) as again:
        assert 2 == votes(again)


@pytest.mark.parametrize("content", ["text", "other", "newer"])
def test_a_file_that_is_not_a_usable_database_is_a_usage_error(extcli, tmp_path: Path, content: str):
    file, target = tmp_path / "file.db", tmp_path / "x.db"
    if content == "text":
        file.write_text("Dear diary, " * 500)
    else:
        with contextlib.closing(sqlite3.connect(file)) as other:
            other.execute("CREATE TABLE diary (day)")
            if content == "newer":
                other.execute("PRAGMA application_id = 0x45020100")
                other.execute("PRAGMA user_version = 99")
            other.commit()

    for verb, *more in (("verify",), ("info",), ("restore", "--data", f"sqlite://{target}")):
        said = extcli("data", verb, str(file), *more, exits=2).stderr
        wanted = "format 99, and this version reads format 1; use the version of extcli that wrote it (2.1.0)"
        assert content != "newer" or wanted in said
    assert not target.exists()


def test_info_describes_a_file_and_names_the_latest_backup(extcli, stored, data: Path, tmp_path: Path):
    extcli("data", "backup", str(tmp_path / "copy.db"), env={"EXTCLI_SERVE_DATA": stored}, exits=0)

    facts = extcli("data", "info", str(data), "-o", "json").json

    assert str(tmp_path / "copy.db") == facts["backup"]["file"]
    assert facts["oldest"] == facts["newest"] <= facts["backup"]["at"]
    assert (__version__, ["sandbox"]) == (facts["version"], [each["name"] for each in facts["environments"]])


def test_a_missing_file_is_named_and_not_created(extcli, tmp_path: Path):
    missing = tmp_path / "none.db"

    for words in (f"backup {tmp_path}/copy.db --data sqlite://{missing}", f"info {missing}", f"verify {missing}"):
        said = extcli("data", *words.split(), fails=2).stderr
        assert f"extcli: cannot open {missing}: there is no such file\n" == said
    assert not list(tmp_path.glob("*.db"))


def test_a_pipe_or_device_is_neither_read_nor_replaced(extcli, stored, tmp_path: Path):
    pipe, copy = tmp_path / "pipe", tmp_path / "copy.db"
    os.mkfifo(pipe)
    extcli("data", "backup", str(copy), "--data", stored, exits=0)

    for words in (
        *(f"backup {pipe} --force --data {stored}", f"restore {copy} --data sqlite://{pipe}", f"verify {pipe}"),
        *(f"info {pipe}", f"forget-key --data sqlite://{pipe}"),
    ):
        said = extcli("data", *words.split(), exits=2).stderr
        assert f"extcli: {pipe} is not a regular file; give the name of a file\n" == said
    assert pipe.is_fifo()


DAMAGES = {
    "zeros": lambda content: content[: 5 * 1024] + bytes(1024) + content[6 * 1024 :],
    "text": lambda content: content[: 8 * 1024] + b"Dear diary, " * 85 + content[8 * 1024 + 12 * 85 :],
    "half": lambda content: content[: len(content) // 2],
    "a wrong count of pages": lambda content: content[:28] + (7).to_bytes(4, "big") + content[32:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_found_and_neither_restored_nor_backed_up(extcli, stored, data: Path, tmp_path: Path, damage):
    copy, again = tmp_path / "copy.db", tmp_path / "again.db"
    extcli("data", "backup", str(copy), "--data", f"sqlite://{data}", exits=0)
    copy.write_bytes(damage(copy.read_bytes()))
    before = data.read_bytes()

    verified = extcli("data", "verify", str(copy))
    restored = extcli("data", "restore", str(copy), "--data", f"sqlite://{data}")
    backed_up = extcli("data", "backup", str(again), "--data", f"sqlite://{copy}")

    assert (7, 7, 2, before) == (verified.exit_code, restored.exit_code, backed_up.exit_code, data.read_bytes())
    assert verified.rows == restored.rows
    assert verified.rows
    assert not list(tmp_path.glob("*again*"))


def test_a_file_that_verifies_stays_as_it_is(extcli, stored, data: Path, tmp_path: Path):
    before = {each: each.read_bytes() for each in tmp_path.glob("data.db*")}

    assert [] == extcli("data", "verify", str(data), exits=0).rows
    assert before == {each: each.read_bytes() for each in tmp_path.glob("data.db*")}


def test_a_backup_removes_what_killed_ones_left_an_hour_ago(extcli, stored, data: Path, tmp_path: Path):
    old, new = tmp_path / ".monday.db-aaaaaaaa.extcli-part-journal", tmp_path / ".copy.db-bbbbbbbb.extcli-part"
    others = tmp_path / ".film.mkv.part"
    for each in (old, new, others):
        each.touch()
    for each in (old, others):
        os.utime(each, (1_000_000_000, 1_000_000_000))

    extcli("data", "backup", str(tmp_path / "copy.db"), "--data", f"sqlite://{data}", exits=0)

    assert [new] == list(tmp_path.glob(".*.extcli-part*")), "that one may be of a backup that runs"
    assert others.exists(), "it is of another program"
