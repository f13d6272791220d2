"""The users of Redis that docs/deploying.md advises: what the service may do, and what other programs may not."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis
from redis.exceptions import AuthenticationError, NoPermissionError

from emulator.core.keys import Key
from emulator.storage.opening import open_engine
from engines.redis_server import RedisServer
from support.process import server_process
from support.program import PROGRAM

DOCS = Path(__file__).parent.parent.parent / "docs" / "deploying.md"
LINES = re.findall(r"^ACL SETUSER .*$", DOCS.read_text(), re.MULTILINE)
CHANNEL = "{emulator|sandbox}:relay:0"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path) as server:
        with redis.Redis(port=server.port) as admin:
            for line in LINES:
                admin.execute_command(*line.split())
        yield server


def url_of_service(server: RedisServer) -> str:
    return f"redis://extcli:SERVICE-PASSWORD@127.0.0.1:{server.port}/0"


@pytest.mark.slow
def test_the_service_keeps_all_rules_as_its_user(server: RedisServer):
    assert 3 == len(LINES)
    with server_process(EXTCLI_SERVE_DATA=url_of_service(server)) as served:
        args = ["conform", "--writes", "--yes", "--whole-extension", "--url", served.url]
        checked = subprocess.run([PROGRAM, *args], capture_output=True, text=True, env=os.environ, check=False)
        reset = httpx.post(f"{served.url}/_emulator/reset")

    assert 0 == checked.returncode, checked.stdout
    assert reset.is_success


async def test_messages_reach_the_other_node(server: RedisServer):
    topic, received = Key("topic", "ext", "event", "777"), []
    async with (
        open_engine(url_of_service(server), namespace="sandbox") as one,
        open_engine(url_of_service(server), namespace="sandbox") as other,
    ):
        other.relay.listen(lambda key, message: received.append((key, message)))
        await one.relay.publish(topic, b"hello")
        while not received:
            await other.check()

    assert [(topic, b"hello")] == received


@pytest.mark.parametrize(
    "command",
    [
        ("PUBLISH", CHANNEL, "forged"),
        ("SPUBLISH", CHANNEL, "forged"),
        ("EVAL", f"return redis.call('PUBLISH', '{CHANNEL}', 'forged')", "0"),
        ("SUBSCRIBE", CHANNEL),
        ("PSUBSCRIBE", "*"),
        ("SSUBSCRIBE", CHANNEL),
        ("GET", "{emulator|sandbox}"),
        ("EVAL", "return redis.call('GET', '{emulator|sandbox}')", "0"),
        ("COPY", "{emulator|sandbox}", "other:mine"),
        ("RENAME", "other:mine", "{emulator|sandbox}"),
        ("FLUSHALL",),
        ("MONITOR",),
        ("CONFIG", "GET", "requirepass"),
        ("ACL", "SETUSER", "other", "allchannels"),
        ("CLIENT", "KILL", "USER", "extcli"),
        ("MIGRATE", "127.0.0.1", "1", "{emulator|sandbox}", "0", "10"),
        ("SWAPDB", "0", "1"),
    ],
)
def test_another_program_can_neither_forge_nor_read(server: RedisServer, command: tuple[str, ...]):
    with redis.Redis(port=server.port, username="other", password="OTHER-PASSWORD") as other:
        assert other.set("other:mine", "1")
        with pytest.raises((NoPermissionError, redis.ResponseError), match=r"permission|can't (access|publish)"):
            other.execute_command(*command)


def test_no_one_enters_without_a_password(server: RedisServer):
    with redis.Redis(port=server.port) as stranger, pytest.raises(AuthenticationError):
        stranger.publish(CHANNEL, "forged")


def test_the_service_reaches_no_key_of_others(server: RedisServer):
    with redis.Redis(port=server.port, username="extcli", password="SERVICE-PASSWORD") as service:
        for command in (("GET", "other:mine"), ("PUBLISH", "other:x", "y"), ("FLUSHALL",), ("SWAPDB", "0", "1")):
            with pytest.raises(NoPermissionError):
                service.execute_command(*command)
