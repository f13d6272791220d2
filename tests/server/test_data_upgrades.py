"""`extcli serve` on files of older and newer formats."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from emulator.engines.sqlite.files.verification import verify_file
from emulator.engines.sqlite.schema import VERSION
from engines.aged_files import unpack
from support import trivia
from support.process import COMMAND, ServerProcess, server_process
from support.program import SECRET_BASE64
from support.service import CHANNEL

OLDER = range(1, VERSION)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


def answers(served: ServerProcess) -> dict[str, object]:
    """Read what the service of the file wrote, by feature."""
    viewer = served.client("viewer", user="5551", channel=CHANNEL)
    admin = served.client("admin", user="9001", channel=CHANNEL)

    def get(client, path: str):
        return client.get(path).raise_for_status().json()

    return {
        "votes": get(viewer, "vote?id=lunch")["stats"]["specific"][:4],
        "own vote": get(viewer, "vote?id=lunch")["vote"],
        "entries": len(get(admin, "vote_logs?id=lunch")["result"]),
        "definition": get(viewer, "vote_config?id=poll-0")["prompt"],
        "ranking": get(admin, "rank?id=boss-7")["data"],
        "buffer": len(get(admin, "accumulate?id=lunch&start=0")["data"]),
        "store": get(viewer, "viewer_state"),
        "json": get(viewer, "json_store?id=lunch")["text"],
        "trivia": trivia.results(viewer),
    }


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The responses from the file of the current format."""
    file = unpack(VERSION, tmp_path_factory.mktemp("current") / "data.db")
    with server_process("--data", f"sqlite://{file}") as served:
        return answers(served)


def log_of(served: ServerProcess) -> list[str]:
    """Stop the service and return its log."""
    assert 0 == served.stop(signal.SIGTERM)
    assert served.process.stderr is not None
    return list(served.process.stderr)


@pytest.mark.parametrize("version", OLDER)
def test_a_file_of_an_older_format_is_raised_and_returns_its_data(path: Path, version: int, expected):
    before = unpack(version, path).read_bytes()
    with server_process("--data", f"sqlite://{path}") as served:
        assert expected == answers(served)
        if version >= 3:  # the first format with codes
            viewer = served.client("viewer", user="5551", channel=CHANNEL)
            assert {"all_prizes": ["A1"]} == viewer.post("codes/redeem", json={"prize": 0}).json()
        log = log_of(served)

    (kept,) = path.parent.glob(f"data.db.format-{version}-*")
    (line,) = [line for line in log if "raised" in line]
    assert f"data.db: raised from format {version} to {VERSION}; the former file is kept as {kept}; " in line
    assert line.endswith("; links, PINs and refresh tokens of earlier versions have ended: link games once more\n")
    assert any(f"serving: extcli 0.1.0, sandbox, data in {path}, format {VERSION}, port" in line for line in log)
    assert (VERSION, []) == verify_file(str(path))[::2]
    assert (version, []) == verify_file(str(kept))[::2]
    assert len(before) == kept.stat().st_size
    assert 0o600 == kept.stat().st_mode & 0o777


@pytest.mark.slow
def test_one_of_several_workers_raises_the_format(path: Path, expected):
    unpack(2, path)
    with server_process("--data", f"sqlite://{path}", "--workers", "3") as served:
        assert expected == answers(served)
        log = log_of(served)

    assert 1 == len([line for line in log if "raised" in line])
    assert 1 == len(list(path.parent.glob("data.db.format-2-*")))


@pytest.mark.slow
def test_services_of_both_modes_that_start_at_once_raise_the_format_once(path: Path, tmp_path: Path):
    unpack(1, path)
    extensions = tmp_path / "extensions.toml"
    extensions.write_text(f'[extensions.my-extension]\nowner_user_id = "7"\nsecrets = ["{SECRET_BASE64}"]\n')
    extensions.chmod(0o600)
    data = ("--data", f"sqlite://{path}", "--port", "0")
    commands = [(*COMMAND, *data), (*COMMAND, *data, "--production", "--extensions", str(extensions))]
    running = [subprocess.Popen(each, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for each in commands]
    try:
        assert ["listening"] * 2 == [str(each.stdout and each.stdout.readline()).split(" ")[0] for each in running]
    finally:
        for each in running:
            each.terminate()
    logs = "".join(each.communicate()[1] for each in running)

    assert 1 == logs.count("raised from format 1")
    assert 1 == len(list(path.parent.glob("data.db.format-1-*")))


def refusal(*options: str, **environment: str) -> str:
    """Return the only line of a service that does not start."""
    with server_process(*options, **environment) as served:
        assert 2 == served.process.wait(20)
        assert served.process.stderr is not None
        (line,) = served.process.stderr
    return line.strip()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_older_format_is_refused_with_no_upgrade(path: Path, workers: str):
    before = unpack(4, path).read_bytes()

    line = refusal("--data", f"sqlite://{path}", "--no-upgrade", "--workers", workers)

    assert f"cannot open {path}: its data has format 4, this version needs format {VERSION}, and --no-upgrade" in line
    assert before == path.read_bytes()
    assert not list(path.parent.glob("data.db.format-*"))


def test_the_upgrade_can_be_refused_by_a_variable(path: Path):
    unpack(4, path)

    assert "--no-upgrade is set" in refusal("--data", f"sqlite://{path}", EXTCLI_SERVE_NO_UPGRADE="1")


def test_no_upgrade_changes_nothing_for_the_current_format(path: Path, expected):
    unpack(VERSION, path)
    with server_process("--data", f"sqlite://{path}", "--no-upgrade") as served:
        assert expected == answers(served)


def test_a_newer_format_is_refused_with_the_version_that_it_needs(path: Path):
    unpack(VERSION, path)
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version = {VERSION + 1}")
        file.execute(f"PRAGMA application_id = {0x45020301}")

    line = refusal("--data", f"sqlite://{path}")

    assert f"(format {VERSION + 1}; this version reads formats up to {VERSION}); use extcli 2.3.1 or later" in line


def test_a_corrupt_file_of_an_older_format_is_not_raised(path: Path):
    path.write_bytes(unpack(4, path).read_bytes()[:-1024])

    assert f"cannot open {path}: it is corrupt" in refusal("--data", f"sqlite://{path}")
    assert [] == list(path.parent.glob("data.db.format-*"))
    assert 4 == int.from_bytes(path.read_bytes()[60:64], "big")  # the user_version
