"""A node that cannot use its Redis at its start ends with one line that says why; whoever started it may try again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.redis_server import RedisServer
from support.process import COMMAND, server_process

PASSWORD = "the.right.word"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis"), "--requirepass", PASSWORD) as server:
        yield server


def complaint(data: str, *options: str) -> str:
    """The one line that it ends with."""
    ended = subprocess.run(
        [*COMMAND, "--port", "0", "--data", data, *options], capture_output=True, text=True, timeout=20, check=False
    )
    assert (2, "") == (ended.returncode, ended.stdout), ended.stderr
    (line,) = ended.stderr.splitlines()
    print(f"\nexit 2: {line}")  # noqa: T201 - seen with -s only
    return line


@pytest.mark.parametrize(("word", "workers"), [("hush.hush", "1"), ("hush.hush", "2"), ("", "1")])
def test_a_wrong_password_is_one_line_that_does_not_show_it(guarded: RedisServer, word: str, workers: str) -> None:
    said = complaint(f"redis://:{word}@127.0.0.1:{guarded.port}/0", "--workers", workers)

    assert said.startswith("extcli serve: Redis: ")
    assert "hush" not in said


def test_the_right_password_is_taken(guarded: RedisServer) -> None:
    with server_process("--data", f"redis://:{PASSWORD}@127.0.0.1:{guarded.port}/0") as served:
        assert served.first_line.startswith("listening on ")


@pytest.mark.parametrize("host", ["127.0.0.1:1", "nowhere.invalid:6379"])
def test_where_no_redis_is_it_ends(host: str) -> None:
    assert complaint(f"redis://:hush@{host}/0").startswith("extcli serve: Redis: ")


def test_a_paused_redis_is_waited_for_no_longer_than_the_patience(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        server.stop()
        assert complaint(server.url()).startswith("extcli serve: Redis: ")


def test_tls_to_a_redis_without_it_is_hinted_at(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        said = complaint(server.url().replace("redis:", "rediss:", 1))

    assert said.endswith("; rediss:// needs a server with TLS; use redis:// without")


def test_a_replica_is_refused(tmp_path: Path) -> None:
    with RedisServer(tmp_path, "--replicaof", "127.0.0.1 1") as server:
        assert "read only" in complaint(server.url())
