"""`extcli exec` as a process: when the command starts, what it finds, and what stays untouched."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from support.exec_process import ExecProcess, run_exec
from support.service import CHANNEL, CLIENT_ID, SECRET

pytestmark = pytest.mark.slow
STARTS = int(os.environ.get("STARTS", "3"))
"""`STARTS=200` repeats what happens rarely."""

VOTE = """
import os, socket
host, port = os.environ["EXTCLI_URL"].removeprefix("http://").split(":")
body = b'{"value":1}'
with socket.create_connection((host, int(port))) as connection:
    connection.sendall(
        b"POST /v1/e/vote HTTP/1.1\\r\\nhost: localhost\\r\\nconnection: close\\r\\ncontent-length: %d\\r\\n"
        b"authorization: %s\\r\\n\\r\\n%s" % (len(body), os.environ["AUTHORIZATION"].encode(), body)
    )
    print(connection.makefile().readline().strip())
"""
PRINT_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


def python(program: str) -> list[str]:
    return [sys.executable, "-IS", "-c", program]


def environment_in(*args: str, **settings: Any) -> dict[str, str]:
    """Return the environment of a command."""
    code, printed, log = run_exec("--quiet", *args, "--", *python(PRINT_ENVIRONMENT), **settings)
    assert (0, "") == (code, log)
    found: dict[str, str] = json.loads(printed)
    return found


def authorization(**claims: str) -> str:
    payload = {"role": "viewer", "user_id": "1", "channel_id": CHANNEL, **claims}
    return f"{CLIENT_ID} {jwt.encode(payload, SECRET)}"


def test_the_first_statement_of_the_command_is_answered():
    for _ in range(STARTS):
        assert (0, "HTTP/1.1 200 OK\n", "") == run_exec(
            "--quiet", "--", *python(VOTE), env={"AUTHORIZATION": authorization()}
        )


def test_the_command_finds_the_service_by_its_variables():
    found = environment_in("--env", "API={url}/v1", "--env", "PLACE={host}|{port}|{client_id}|{namespace}|{{x}}")
    url = httpx.URL(found["EXTCLI_URL"])

    assert ("http", "127.0.0.1", f"ws://127.0.0.1:{url.port}/ws") == (url.scheme, url.host, found["EXTCLI_WS_URL"])
    assert ("my-extension", f"{url}/v1") == (found["EXTCLI_CLIENT_ID"], found["API"])
    assert f"127.0.0.1|{url.port}|my-extension|default|{{x}}" == found["PLACE"]


def test_variables_of_the_caller_do_not_lead_the_command_astray(tmp_path: Path):
    astray = {
        "EXTCLI_PROFILE": "live",
        "EXTCLI_URL": "http://elsewhere",
        "EXTCLI_WS_URL": "ws://elsewhere/ws",
        "EXTCLI_TOKEN": "token",
        "EXTCLI_SECRET": "secret",
        "EXTCLI_SECRET_FILE": "live.secret",
        "EXTCLI_CLIENT_ID": "other",
        "EXTCLI_AS": "admin",
        "EXTCLI_CHANNEL": "5",
        "EXTCLI_PIN_PATH": "elsewhere",
        "EXTCLI_BROADCAST_METHOD": "POST",
        "EXTCLI_CONFIG": str(tmp_path / "config.toml"),
        "EXTCLI_STATE_DIR": str(tmp_path),
    }
    kept = {"EXTCLI_OUTPUT": "json", "EXTCLI_TIMEOUT": "5s", "OTHER": "x", "EXTCLI_SERVE_LEEWAY": "1"}
    found = environment_in(env=astray | kept)

    assert [] == [name for name, value in astray.items() if found.get(name) == value]
    assert {"EXTCLI_URL", "EXTCLI_WS_URL", "EXTCLI_CLIENT_ID", "EXTCLI_SECRET_FILE", "EXTCLI_CONFIG"} | {
        "EXTCLI_STATE_DIR"
    } == set(astray) & set(found)
    assert kept == {name: found[name] for name in kept}
    assert "7" == environment_in("--env", "EXTCLI_CHANNEL=7", env=astray)["EXTCLI_CHANNEL"]


def test_variables_of_serve_apply_except_those_that_runs_would_share(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        shared = {
            "EXTCLI_SERVE_PORT": str(taken.getsockname()[1]),
            "EXTCLI_SERVE_DATA": f"sqlite:///{tmp_path}/data.db",
            "EXTCLI_SERVE_NAME": "shared",
            "EXTCLI_SERVE_LOG_FORMAT": "json",
        }
        code, _, log = run_exec("--", "true", env=shared)

    assert (0, "data in memory") == (code, json.loads(log.splitlines()[0])["message"].split(", ")[2])
    assert not (tmp_path / "data.db").exists()


def test_the_secret_file_signs_tokens_of_a_registered_extension(tmp_path: Path):
    file = tmp_path / "extensions.toml"
    secret = base64.b64encode(SECRET).decode()
    (tmp_path / "second.txt").write_text(f"{secret}\n")
    file.write_text(f'[extensions.one]\nsecrets = ["{secret}"]\n[extensions.two]\nsecret_files = ["second.txt"]\n')
    file.chmod(0o600)
    show = 'stat -c %a "$EXTCLI_SECRET_FILE" "$(dirname "$EXTCLI_SECRET_FILE")"; cat "$EXTCLI_SECRET_FILE"; '
    options = ("--quiet", "--production", "--extensions", str(file))

    assert (0, f"600\n700\n{secret}\none\n", "") == run_exec(
        *options, "--", "sh", "-c", f"{show} echo $EXTCLI_CLIENT_ID"
    )
    assert (0, f"600\n700\n{secret}\ntwo\n", "") == run_exec(
        *options, "--client-id", "two", "--", "sh", "-c", f"{show} echo $EXTCLI_CLIENT_ID"
    )


def test_commands_in_the_command_need_no_configuration():
    script = "extcli vote cast lunch --value 3 && extcli vote get lunch -o plain && extcli token mint > minted && wc -l < minted"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def test_runs_side_by_side_share_no_port_and_touch_no_files(tmp_path: Path):
    places = {name: str(tmp_path / name) for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")}
    for each in places.values():
        Path(each).mkdir(mode=0o700)
    runs = [ExecProcess("--quiet", "--", "sh", "-c", "echo $EXTCLI_URL; read end", env=places) for _ in range(20)]
    urls = [run.line() for run in runs]
    headers = {"authorization": authorization()}
    counts = [httpx.post(f"{url}/v1/e/vote", json={"value": 1}, headers=headers).json()["count"] for url in urls]
    ends = [run.end() for run in runs]

    assert 20 == len(set(urls))
    assert [1] * 20 == counts
    assert [(1, "", "")] * 20 == ends  # `read` at the end of the input exits 1
    assert sorted(places) == sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*"))
