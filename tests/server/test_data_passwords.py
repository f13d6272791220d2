"""The password of Redis: a warning where every user of the machine can read it, and no text that repeats it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from engines.redis_server import RedisServer
from support import preloaded
from support.examples import spread
from support.process import ServerProcess, server_process

pytestmark = pytest.mark.slow
PASSWORD = "hunter2-of-redis"
WARNING = "--data: every user of this machine can read the password in the list of processes; use EXTCLI_SERVE_DATA"


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis"), "--requirepass", PASSWORD, "--appendonly", "yes") as server:
        yield server


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))


def forms(redis: RedisServer) -> list[str]:
    place = f"127.0.0.1:{redis.port}/0"
    return [
        f"redis://:{PASSWORD}@{place}",
        f"valkey://default:{PASSWORD}@{place}",
        f"redis://{place}?password={PASSWORD}",
    ]


def texts_of(served: ServerProcess, folder: Path) -> str:
    """Return what the service and the commands about it show."""
    environment = {**os.environ, "EXTCLI_URL": served.url}
    texts = [file.read_text() for file in folder.rglob("*.json")]
    for args in (["status", "-o", "json"], ["doctor"]):
        with preloaded.start(args, environment) as process:
            texts += process.communicate()
    for path in ("", "ready", "metrics", "clock", "parity"):
        texts.append(httpx.get(f"{served.url}/_emulator/{path}", timeout=60).text)
    return "".join(texts)


def log_of(served: ServerProcess) -> str:
    """Stop the service, and return its log."""
    assert 0 == served.stop(signal.SIGTERM)
    assert served.process.stderr is not None
    return served.process.stderr.read()


@pytest.mark.parametrize("form", spread(range(3), 3))
def test_a_password_on_the_command_line_is_warned_of_and_shown_nowhere(redis: RedisServer, tmp_path: Path, form: int):
    data = forms(redis)[form]
    with server_process("--name", "web", "--log-level", "debug", "--data", data) as served:
        shown = texts_of(served, tmp_path / "run")
        log = log_of(served)

    assert f"Redis at 127.0.0.1:{redis.port}/0" in shown
    assert WARNING in log
    assert PASSWORD not in shown + log


def test_the_variable_gives_no_warning(redis: RedisServer):
    with server_process(EXTCLI_SERVE_DATA=forms(redis)[0]) as served:
        assert "EXTCLI_SERVE_DATA" not in log_of(served)


@pytest.mark.parametrize(
    "data",
    spread(
        [
            f"redis://:{PASSWORD}-wrong@127.0.0.1:PORT/0",
            f"redis://:{PASSWORD}@127.0.0.1:1/0",
            f"redis://:{PASSWORD}@[::1/0",
            f"redsi://:{PASSWORD}@127.0.0.1:PORT/0",
            f"redis:/:{PASSWORD}@127.0.0.1",
            f"redis://127.0.0.1:PORT/0?pasword={PASSWORD}",
        ],
        3,
    ),
)
def test_no_error_repeats_the_password(redis: RedisServer, data: str):
    for command in ("serve --port 0 --data DATA", "data info --data DATA", "exec --data DATA true"):
        words = [each.replace("DATA", data.replace("PORT", str(redis.port))) for each in command.split()]
        with preloaded.start(words, os.environ) as process:
            printed, log = process.communicate()

        assert 2 == process.returncode, log
        assert PASSWORD not in printed + log


def test_the_password_is_in_no_record_of_a_run(redis: RedisServer, tmp_path: Path):
    data, report = forms(redis)[0], tmp_path / "report"
    with preloaded.start(["exec", "--data", data, "--on-failure", str(report), "--", "false"], os.environ) as process:
        printed, log = process.communicate()

    assert 1 == process.returncode
    assert WARNING in log
    grep = subprocess.run(["grep", "-r", PASSWORD, report], capture_output=True, text=True, check=False)
    assert PASSWORD not in printed + log + grep.stdout
