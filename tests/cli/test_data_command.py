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

from emulator.storage.sqlite.tables import VERSION
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


def test_a_backup_of_a_running_service_is_one_file_that_verifies(extcli, served, data: Path, tmp_path: Path):
    result = extcli("data", "backup", str(tmp_path / "copy.db"), "--data", f"sqlite://{data}", "-o", "json", exits=0)

    assert {"poll": 1, "viewer_state": 1}.items() <= result.json["environments"][0]["counts"].items()
    assert (VERSION, (tmp_path / "copy.db").stat().st_size) == (result.json["format"], result.json["bytes"])
    assert 0o600 == (tmp_path / "copy.db").stat().st_mode & 0o777
    assert 0 == extcli("data", "verify", str(tmp_path / "copy.db")).exit_code
    assert ["copy.db"] == [path.name for path in tmp_path.iterdir() if "copy" in path.name]


def test_a_backup_replaces_a_file_only_with_force(extcli, stored, data: Path, tmp_path: Path):
    copy = tmp_path / "copy.db"
    copy.write_text("notes")

    refused = extcli("data", "backup", str(copy), "--data", f"sqlite://{data}")

    assert (2, "notes") == (refused.exit_code, copy.read_text())
    assert "exists already; give another name, or --force" in refused.stderr
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

    expected = f"extcli: {log} exists: a program uses {copy}, or was killed; give another name\n"
    assert (2, expected) == (refused.exit_code, refused.stderr)


def test_a_backup_never_replaces_the_data_itself(extcli, served, data: Path):
    result = extcli("data", "backup", str(data), "--data", f"sqlite://{data}", "--force")

    assert (2, 1) == (result.exit_code, votes(served))
    assert "is the data itself" in result.stderr


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


def test_restore_refuses_while_a_service_runs(extcli, served, data: Path, tmp_path: Path):
    extcli("data", "backup", str(tmp_path / "copy.db"), "--data", f"sqlite://{data}")

    result = extcli("data", "restore", str(tmp_path / "copy.db"), "--data", f"sqlite://{data}", exits=2)

    assert f"in use by another extcli serve, process {served.process.pid}; stop it first\n" in result.stderr
    assert 1 == votes(served)


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
    copy = tmp_path / "copy.db"
    extcli("data", "backup", str(copy), "--data", f"sqlite://{data}")
    served.client("viewer", user="7", channel="1001").post("vote?id=lunch", json={"value": 1}).raise_for_status()
    os.kill(served.process.pid, signal.SIGKILL)  # the log of the file stays next to it
    served.process.wait()

    result = extcli("data", "restore", str(copy), "--data", f"sqlite://{data}", exits=0)

    (former,) = tmp_path.glob("data.db.before-restore-*")
    with server_process("--data", f"sqlite://{data}") as again:
        assert 1 == votes(again)
        again.stop(signal.SIGTERM)
    (undo,) = [line.split()[1:] for line in result.stderr.splitlines() if line.startswith("  extcli data restore")]
    assert str(former) in undo
    assert 0 == extcli(*undo).exit_code
    with server_process("--data", f"sqlite://{data}") as again:
        assert 2 == votes(again)


@pytest.mark.parametrize("verb", ["verify", "info", "restore"])
@pytest.mark.parametrize("content", ["text", "other", "newer"])
def test_a_file_that_is_not_a_usable_database_is_a_usage_error(extcli, tmp_path: Path, verb: str, content: str):
    file = tmp_path / "file.db"
    if content == "text":
        file.write_text("Dear diary, " * 500)
    else:
        with contextlib.closing(sqlite3.connect(file)) as other:
            other.execute("CREATE TABLE diary (day)")
            if content == "newer":
                other.execute("PRAGMA application_id = 0x45020100")
                other.execute("PRAGMA user_version = 99")
            other.commit()

    result = extcli(
        "data", verb, str(file), *(("--data", f"sqlite://{tmp_path}/x.db") if verb == "restore" else ()), exits=2
    )

    assert not (tmp_path / "x.db").exists()
    if content == "newer":
        assert "format 99, and this version reads format 1; use the extcli that wrote it (2.1.0)" in result.stderr


def test_info_describes_a_file_and_names_the_latest_backup(extcli, stored, data: Path, tmp_path: Path):
    extcli("data", "backup", str(tmp_path / "copy.db"), env={"EXTCLI_SERVE_DATA": stored}, exits=0)

    facts = extcli("data", "info", str(data), "-o", "json").json

    assert str(tmp_path / "copy.db") == facts["backup"]["file"]
    assert facts["oldest"] == facts["newest"] <= facts["backup"]["at"]
    assert (__version__, ["sandbox"]) == (facts["version"], [each["name"] for each in facts["environments"]])


def test_the_key_is_not_deleted_while_a_service_runs(extcli, served, data: Path):
    refused = extcli("data", "forget-key", "--data", f"sqlite://{data}")
    served.stop(signal.SIGTERM)

    assert 2 == refused.exit_code
    assert "in use by another extcli serve" in refused.stderr
    assert f"deleted 1 signing keys from {data}\n" == extcli("data", "forget-key", "--data", f"sqlite://{data}").stderr
    assert f"{data} has no signing key\n" == extcli("data", "forget-key", "--data", f"sqlite://{data}").stderr


@pytest.mark.parametrize("words", ["backup {copy} --data sqlite://{}", "info {}", "verify {}"])
def test_a_missing_file_is_named_and_not_created(extcli, tmp_path: Path, words: str):
    missing = tmp_path / "none.db"

    result = extcli("data", *words.format(missing, copy=tmp_path / "copy.db").split(), fails=2)

    assert f"extcli: cannot open {missing}: there is no such file\n" == result.stderr
    assert not list(tmp_path.glob("*.db"))


@pytest.mark.parametrize("words", ["backup {} --force --data sqlite://{data}", "restore {copy} --data sqlite://{}",
                                   "verify {}", "info {}", "forget-key --data sqlite://{}"])  # fmt: skip
def test_a_pipe_or_device_is_neither_read_nor_replaced(extcli, stored, data: Path, tmp_path: Path, words: str):
    pipe, copy = tmp_path / "pipe", tmp_path / "copy.db"
    os.mkfifo(pipe)
    assert 0 == extcli("data", "backup", str(copy), "--data", f"sqlite://{data}").exit_code

    result = extcli("data", *words.format(pipe, data=data, copy=copy).split())

    assert (2, f"extcli: {pipe} is not a regular file; give the name of a file\n") == (result.exit_code, result.stderr)
    assert pipe.is_fifo()


def zeros(content: bytes) -> bytes:
    return content[: 5 * 1024] + bytes(1024) + content[6 * 1024 :]


def text(content: bytes) -> bytes:
    return content[: 8 * 1024] + b"Dear diary, " * 85 + content[8 * 1024 + 12 * 85 :]


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def wrong_count_of_pages(content: bytes) -> bytes:
    return content[:28] + (7).to_bytes(4, "big") + content[32:]


@pytest.mark.parametrize("damage", [zeros, text, half, wrong_count_of_pages])
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
