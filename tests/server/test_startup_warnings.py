"""What `serve` says at its start: a warning of each risky setting, and its addresses on a terminal."""

from __future__ import annotations

import base64
import os
import pty
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from engines.redis_server import RedisServer
from support.process import server_process, unexpected_log_lines
from support.program import PROGRAM
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


def test_a_risky_setting_and_an_unknown_variable_are_logged_once_without_secrets(tmp_path: Path):
    file = extensions(tmp_path, f'secrets = ["{TEXT}"]', mode=0o644)
    variables = {"LEWAY": "hidden", "SERVICE_ACCOUNT": "hidden", "LOG_LEVEL": "info"}

    risky, *unknown = sorted(
        warnings(
            *("--extensions", file, "--data", f"sqlite:///{tmp_path}/data.db"),
            **{f"EXTCLI_SERVE_{name}": value for name, value in variables.items()},
        ),
        key=lambda line: "unknown option" in line,
    )

    assert risky.startswith(f"{file}: contains secrets")
    assert [
        "EXTCLI_SERVE_LEWAY: unknown option; did you mean EXTCLI_SERVE_LEEWAY?",
        "EXTCLI_SERVE_SERVICE_ACCOUNT: unknown option",
    ] == unknown


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


def shown(*args: str, columns: str = "120", **variables: str) -> tuple[str, str]:
    """Run `extcli serve` with standard error on a terminal. Return its first line, and the terminal's text."""
    master, slave = pty.openpty()
    command = [PROGRAM, "serve", *args, *([] if "--port" in args else ["--port", "0"])]
    variables = {**os.environ, "COLUMNS": columns, "NO_COLOR": "1", **variables}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=variables, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.terminate()
        assert "API" not in process.stdout.read()
    os.close(slave)
    written = os.read(master, 1 << 16).decode().replace("\r\n", "\n")
    os.close(master)
    return first, written


def test_the_banner_has_the_addresses():
    first, text = shown()

    url = first.removeprefix("listening on ").strip()
    assert re.search(r"^  extcli \S+ · sandbox · data in memory \(lost when the service stops\)$", text, re.M)
    assert f"\n  API        {url}\n" in text
    assert f"\n  Dashboard  {url}/_emulator/\n  Demo       extcli --url {url} demo\n" in text
    assert f'\n  Page       <script src="{url}/_emulator/sdk.js"></script>\n' in text
    assert "\n  Ctrl-C stops\n" in text
    assert "\x1b" not in text


@pytest.mark.long
def test_the_banner_names_an_address_that_clients_can_use():
    _, text = shown("--host", "0.0.0.0")

    assert re.search(r"^  API        http://127\.0\.0\.1:\d+$", text, re.M)
    assert "//0.0.0.0" not in text


def test_the_banner_of_production_has_no_dashboard(tmp_path: Path):
    (file := tmp_path / "extensions.toml").write_text('[extensions.my-extension]\nsecret_env = "SECRET"\n')

    _, text = shown("--production", "--extensions", str(file), SECRET=base64.b64encode(SECRET).decode())

    assert " · production · " in text
    assert "Dashboard" not in text
    assert "sdk.js" not in text
