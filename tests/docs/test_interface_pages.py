"""docs/rest.md, docs/roles.md and docs/websocket.md: the generated parts, the messages, and the two clients."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import ROOT, blocks

from emulator.callers import Role
from support.role_table import TABLE
from support.service import CHANNEL, CLIENT_ID, LiveServer
from tools import interface_pages

PAGE = ROOT / "docs" / "websocket.md"


@pytest.mark.parametrize("path", interface_pages.pages(), ids=lambda path: str(path.name))
def test_make_docs_has_written_the_page(path: Path) -> None:
    assert interface_pages.pages()[path] == path.read_text()


def test_the_roles_of_the_page_are_those_that_the_service_enforces() -> None:
    page = (ROOT / "docs" / "roles.md").read_text().splitlines()
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in page if line.startswith("| `")]
    shown = {row[0]: {role for role, cell in zip(Role, row[1:], strict=False) if cell == "yes"} for row in rows}
    enforced = {tuple(words[:2]): {*words[2:6]} - {"-"} for words in map(str.split, TABLE.splitlines()) if words}

    assert [] == [
        name for name, roles in enforced.items() if "global" not in name[1] and shown[" ".join(name)] != roles
    ]


@pytest.mark.parametrize("name", ["rest", "websocket"])
def test_the_messages_of_a_page_are_json(name: str) -> None:
    texts = [block.text for block in blocks(ROOT / "docs" / f"{name}.md") if block.info == "json"]

    assert texts
    assert all(isinstance(json.loads(text), dict) for text in texts)


def has_no_websocket() -> bool:
    """Whether this Node.js is older than 22."""
    printed = subprocess.run(["node", "-p", "typeof WebSocket"], capture_output=True, text=True, check=True, timeout=30)
    return printed.stdout.strip() == "undefined"


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "js"])
def test_a_client_of_the_page_reads_the_state_and_an_update(live: LiveServer, tmp_path: Path, language: str) -> None:
    [text] = [block.text for block in blocks(PAGE) if block.info == language]
    command = [sys.executable, "-W", "error", "game.py"] if language == "python" else ["node", "game.mjs"]
    if not shutil.which(command[0]):
        pytest.skip("needs Node.js")
    if language == "js" and has_no_websocket():
        text = f"import WebSocket from 'ws';\n{text}"  # as the page says
        (tmp_path / "node_modules").symlink_to(ROOT / "tests" / "sdk" / "node_modules")
    (tmp_path / command[-1]).write_text(text)
    broadcaster = live.client("broadcaster", user=CHANNEL, channel=CHANNEL)
    broadcaster.post("channel_state", json={"round": 1}).raise_for_status()
    variables = {
        "EXTCLI_WS_URL": f"{live.url.replace('http', 'ws', 1)}/ws",
        "EXTCLI_CLIENT_ID": CLIENT_ID,
        "PIN": broadcaster.post("link/pin", json={}).json()["pin"],
    }

    with subprocess.Popen(command, cwd=tmp_path, env=os.environ | variables, stdout=subprocess.PIPE, text=True) as game:
        assert game.stdout is not None
        try:
            first = game.stdout.readline()
            broadcaster.post("channel_state", json={"round": 2}).raise_for_status()
            second = game.stdout.readline()
        finally:
            game.kill()

    documents = [json.loads(line.partition(": ")[2]) for line in (first, second)]
    assert [{"round": 1}, {"round": 2}] == documents
