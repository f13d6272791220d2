"""A node that cannot use Redis at its start exits 2 with one line."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.redis_server import RedisServer
from support.process import COMMAND, server_process

pytestmark = pytest.mark.long

PASSWORD = "the.right.word"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis"), "--requirepass", PASSWORD) as server:
        yield server


def failed_start(data: str, *options: str) -> str:
    """Start a node that must fail; return its one line of output."""
    ended = subprocess.run(
        [*COMMAND, "--port", "0", "--data", data, *options], capture_output=True, text=True, timeout=20, check=False
    )
    assert (2, "") == (ended.returncode, ended.stdout), ended.stderr
    (line,) = ended.stderr.splitlines()
    print(f"\nexit 2: {line}")  # noqa: T201 - seen with -s only
    return line


@pytest.mark.parametrize("word", ["hush.hush", ""])
def test_a_wrong_password_is_not_shown(guarded: RedisServer, word: str) -> None:
    error = failed_start(f"redis://:{word}@127.0.0.1:{guarded.port}/0")

    assert error.startswith("extcli serve: Redis: ")
    assert "hush" not in error


def test_the_right_password_is_accepted(guarded: RedisServer) -> None:
    with server_process("--data", f"redis://:{PASSWORD}@127.0.0.1:{guarded.port}/0") as served:
        assert served.first_line.startswith("listening on ")


@pytest.mark.parametrize("host", ["127.0.0.1:1", "nowhere.invalid:6379"])
def test_a_missing_redis_fails_the_start(host: str) -> None:
    assert failed_start(f"redis://:hush@{host}/0").startswith("extcli serve: Redis: ")


def test_a_paused_redis_fails_the_start_after_the_timeout(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        server.stop()
        assert failed_start(server.url()).startswith("extcli serve: Redis: ")


def test_a_failed_tls_handshake_has_a_hint(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        error = failed_start(server.url().replace("redis:", "rediss:", 1))

    assert error.endswith("; rediss:// needs a server with TLS; use redis:// without")


def test_a_replica_fails_the_start(tmp_path: Path) -> None:
    with RedisServer(tmp_path, "--replicaof", "127.0.0.1 1") as server:
        assert "read only" in failed_start(server.url())
