"""Risky settings cause one warning at the start, and no error."""

from __future__ import annotations

import base64
import os
import signal
import threading
from pathlib import Path

from engines.redis_server import RedisServer
from support.process import server_process, unexpected_log_lines
from support.service import CLIENT_ID, SECRET

TEXT = base64.b64encode(SECRET).decode()
NO_LOG = "Redis writes no append-only file, so a crash loses data: set its appendonly to yes"


def warnings(*args: str, **environment: str) -> list[str]:
    with server_process(*args, **environment) as served:
        assert 0 == served.stop(signal.SIGTERM)
        return [line.split(": ", 1)[1].strip() for line in unexpected_log_lines(served)]


def extensions(folder: Path, line: str, mode: int = 0o600) -> str:
    file = folder / "extensions.toml"
    file.write_text(f"[extensions.{CLIENT_ID}]\n{line}\n")
    file.chmod(mode)
    return str(file)


def test_a_risky_setting_is_logged_once(tmp_path: Path):
    file = extensions(tmp_path, f'secrets = ["{TEXT}"]', mode=0o644)

    (line,) = warnings("--extensions", file, "--data", f"sqlite:///{tmp_path}/data.db")

    assert line.startswith(f"{file}: holds secrets")


def test_extensions_from_a_pipe_are_read_once(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(f'[extensions.{CLIENT_ID}]\nsecrets = ["{TEXT}"]\n',))
    writer.start()

    assert [] == warnings("--extensions", str(pipe))
    writer.join()


def test_a_redis_without_persistence(tmp_path: Path):
    with RedisServer(tmp_path) as redis:
        without = warnings("--data", redis.url())
    with RedisServer(tmp_path, "--appendonly", "yes", "--appendfsync", "everysec") as redis:
        with_log = warnings("--data", redis.url())

    assert ([NO_LOG], []) == (without, with_log)


def test_an_unknown_variable_is_named_without_its_value(tmp_path: Path):
    lines = warnings(
        "--data",
        f"sqlite:///{tmp_path}/data.db",
        EXTCLI_SERVE_LEWAY="hidden",
        EXTCLI_SERVE_SERVICE_ACCOUNT="hidden",
        EXTCLI_SERVE_LOG_LEVEL="info",
    )

    assert [
        "EXTCLI_SERVE_LEWAY: unknown option; did you mean EXTCLI_SERVE_LEEWAY?",
        "EXTCLI_SERVE_SERVICE_ACCOUNT: unknown option",
    ] == lines
