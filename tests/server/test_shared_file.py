"""A second service on a SQLite file is refused: each has a clock and caches of its own."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from emulator.storage.sqlite.schema import VERSION
from support.extension_files import write_extensions
from support.process import ServerProcess, server_process


@pytest.fixture
def data(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/data.db"


def refusal(*options: str) -> str:
    """Start a service that must end with exit code 2, and return its one line."""
    with server_process(*options) as served:
        output, error = served.process.communicate(timeout=20)

    assert (2, "") == (served.process.returncode, served.first_line + output)
    (line,) = error.splitlines()
    return line


def vote(served: ServerProcess) -> int:
    return served.client("viewer", user="1", channel="777").post("vote", json={"value": 1}).status_code


@pytest.mark.parametrize("second", ["sandbox", "production"])
def test_a_second_service_is_refused_and_names_the_first(data: str, tmp_path: Path, second: str):
    options = ("--production", "--extensions", write_extensions(tmp_path)) if second == "production" else ()
    with server_process("--data", data) as served:
        line = refusal("--data", data, *options)

        assert f"in use by another extcli serve, process {served.process.pid}; stop it first" in line
        assert re.match(r"extcli serve: cannot open /\S*/data\.db: in use", line)
        assert 200 == vote(served)


def test_another_name_of_the_file_is_recognized(data: str, tmp_path: Path):
    with server_process("--data", data):
        (tmp_path / "link.db").symlink_to("data.db")

        assert "in use by another extcli serve" in refusal("--data", f"sqlite:///{tmp_path}/link.db?synchronous=full")


def test_a_killed_service_leaves_the_file_free(data: str):
    with server_process("--data", data) as served:
        served.process.kill()
        served.process.wait(5)
    with server_process("--data", data) as served:
        assert 200 == vote(served)


def test_readers_and_backups_work_while_a_service_runs(data: str, tmp_path: Path):
    with server_process("--data", data) as served:
        vote(served)
        shell = sqlite3.connect(tmp_path / "data.db", isolation_level=None)
        shell.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
        (entries,) = shell.execute("SELECT count(*) FROM entries").fetchone()
        shell.close()
        with server_process("--data", f"sqlite:///{tmp_path}/copy.db") as other:
            statistics = other.client("viewer", user="1", channel="777").get("vote").json()

        assert (1, 1) == (entries, statistics["count"])
        assert 200 == vote(served)


def test_a_file_of_another_format_is_refused_in_one_line(data: str, tmp_path: Path):
    with server_process("--data", data) as served:
        vote(served)
        served.stop(15)
    shell = sqlite3.connect(tmp_path / "data.db")
    shell.execute("PRAGMA user_version = 3")
    shell.close()

    line = refusal("--data", data)

    assert f"data.db: its data has format 3, and this version reads format {VERSION}" in line
