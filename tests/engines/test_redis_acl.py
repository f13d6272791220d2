"""The users of Redis that docs/deploying.md advises may not do more. The contract runs as the one of the service."""

from __future__ import annotations

import pytest
import redis
from redis.exceptions import NoPermissionError

from engines.redis_server import RedisServer

CHANNEL = "{emulator|sandbox}:relay:0"


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
def test_another_program_can_neither_forge_nor_read(redis_server: RedisServer, command: tuple[str, ...]):
    with redis.Redis(port=redis_server.port, username="other", password="OTHER-PASSWORD") as other:
        assert other.set("other:mine", "1")
        with pytest.raises((NoPermissionError, redis.ResponseError), match=r"permission|can't (access|publish)"):
            other.execute_command(*command)


def test_the_service_reaches_no_key_of_others(redis_server: RedisServer):
    with redis.Redis(port=redis_server.port, username="extcli", password="SERVICE-PASSWORD") as service:
        for command in (("GET", "other:mine"), ("PUBLISH", "other:x", "y"), ("FLUSHALL",), ("SWAPDB", "0", "1")):
            with pytest.raises(NoPermissionError):
                service.execute_command(*command)
