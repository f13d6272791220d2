"""`serve --import` and `--export-on-exit`."""

from __future__ import annotations

import gzip
import json
import os
import signal
from pathlib import Path

import httpx
import pytest

from support.examples import spread
from support.extension_files import write_extensions
from support.process import ServerProcess, server_process

WHOLE = (
    '{"extcli_snapshot":1,"version":"","environment":"sandbox","clock":{},"keys":false,"counts":{},"records":[\n]}\n'
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.json"


def vote(served: ServerProcess, user: str) -> None:
    served.client("viewer", user=user, channel="777").post("vote", json={"value": 1}).raise_for_status()


def count(served: ServerProcess) -> int:
    return int(served.client("viewer", user="9", channel="777").get("vote").json()["count"])


def refused(*args: str) -> str:
    """Start a service that must not start; return what it says."""
    with server_process(*args) as served:
        printed, log = served.process.communicate(timeout=60)
    assert (2, "") == (served.process.returncode, served.first_line + printed)
    return log


@pytest.mark.parametrize("name", ["data.json", "data.json.gz"])
@pytest.mark.parametrize("by_variable", spread([True, False], 2))
def test_a_service_goes_on_with_the_data_of_the_last_run(tmp_path: Path, name: str, by_variable: bool):
    file = str(tmp_path / name)
    args = () if by_variable else ("--import", file, "--export-on-exit", file)
    variables = {"EXTCLI_SERVE_IMPORT": file, "EXTCLI_SERVE_EXPORT_ON_EXIT": file} if by_variable else {}
    for number in range(2):
        with server_process(*args, **variables) as served:
            assert number == count(served)
            vote(served, str(number))
            if number == 0:
                served.set(1_000)
            assert 1_000 == served.now()
            assert 0 == served.stop(signal.SIGTERM)

    text = (tmp_path / name).read_bytes()
    document = json.loads(gzip.decompress(text) if name.endswith(".gz") else text)
    assert 2 == document["counts"]["entry"]
    assert [name] == os.listdir(tmp_path)


def test_only_the_default_namespace_is_exported(path: Path):
    with server_process("--export-on-exit", str(path)) as served:
        httpx.post(f"{served.url}/_ns/blue/_emulator/reset").raise_for_status()
        blue = served.client("viewer", user="1", channel="777")
        blue.base_url = httpx.URL(f"{served.url}/_ns/blue/v1/e/")
        blue.post("vote", json={"value": 1}).raise_for_status()
        assert 0 == served.stop(signal.SIGTERM)

    assert {} == json.loads(path.read_text())["counts"]


def test_an_export_that_fails_keeps_the_old_file_and_exits_1(path: Path):
    path.write_text("old")
    with server_process("--export-on-exit", str(path)) as served:
        moved = path.rename(path.parent / "moved")
        path.mkdir()
        assert 1 == served.stop(signal.SIGTERM)
        assert served.process.stderr is not None
        log = served.process.stderr.read()

    assert f"extcli serve: --export-on-exit {path}: Is a directory; the file was not changed" in log
    assert "old" == moved.read_text()
    assert sorted(["data.json", "moved"]) == sorted(os.listdir(path.parent))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "line 1: "),
        ("{}", "line 1: "),
        (WHOLE.replace("]}", "{}"), "line 2: type: "),
        (WHOLE.replace('"counts":{}', '"counts":{"entry":1}'), "line 2: entry: "),
    ],
)
def test_a_faulty_import_ends_the_start_with_its_line(path: Path, content: str, problem: str):
    path.write_text(content)

    message = refused("--import", str(path), "--export-on-exit", str(path))

    assert f"extcli serve: --import {path}: {problem}" in message
    assert content == path.read_text()


def test_options_that_cannot_work_end_the_start(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (empty := tmp_path / "empty").mkdir()
    monkeypatch.chdir(empty)
    for args in (["--import", "absent.json"], ["--export-on-exit", "absent/data.json"], ["--export-on-exit", "/"]):
        assert f"extcli serve: {' '.join(args)}: " in refused(*args)
    assert [] == os.listdir(empty)

    path.write_text(WHOLE)
    message = refused("--production", "--extensions", write_extensions(tmp_path), "--import", str(path))
    assert "--import: snapshots do not work with --production" in message
