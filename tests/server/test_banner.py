"""`serve` on a terminal shows its addresses on standard error; standard output keeps its first line."""

from __future__ import annotations

import base64
import os
import pty
import re
import subprocess
from pathlib import Path

from support.program import PROGRAM
from support.service import SECRET


def shown(*args: str, columns: str = "120", **variables: str) -> tuple[str, str]:
    """Run `extcli serve` with standard error on a terminal. Return its first line, and the terminal's text."""
    master, slave = pty.openpty()
    command = [PROGRAM, "serve", *args, *([] if "--port" in args else ["--port", "0"])]
    variables = {**os.environ, "COLUMNS": columns, **variables}
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
    assert re.search(r"^  extcli \S+ · sandbox · data in memory \(gone after a stop\)$", text, re.M)
    assert f"\n  API        {url}\n" in text
    assert f"\n  Dashboard  {url}/_emulator/     extcli --url {url} demo plays a crowd\n" in text
    assert f'\n  Page       <script src="{url}/_emulator/sdk.js"></script>\n' in text
    assert f"\n  Game       {url.replace('http', 'ws', 1)}/ws\n  Ctrl-C stops\n" in text
    assert "\x1b" not in text


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
