"""The code that docs/websocket.md shows runs: the decoder, and the two clients."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import ROOT, blocks

from support.pusher_client import subscribed_page
from support.service import CHANNEL, CLIENT_ID, LiveServer

PAGE = ROOT / "docs" / "websocket.md"


def test_the_decoder_of_the_page_reads_plain_and_compressed_frames(live: LiveServer) -> None:
    if not shutil.which("node"):
        pytest.skip("needs Node.js")
    owner = live.client("broadcaster", user=CHANNEL, channel=CHANNEL)
    with subscribed_page(live) as page:
        frames = []
        for data in ({"number": 2}, ["long"] * 1_000):
            owner.post("broadcast", json={"event": "round", "data": data}).raise_for_status()
            frames.append(page.frame())
    [text] = [block.text for block in blocks(PAGE) if block.info == "js" and "function decode(" in block.text]
    script = f"{text}for (const frame of {json.dumps(frames)}) console.log(JSON.stringify(await decode(frame)));"

    printed = subprocess.run(
        ["node", "--input-type=module"], input=script, capture_output=True, text=True, check=True, timeout=60
    ).stdout

    plain, compressed = map(json.loads, printed.splitlines())
    assert {"event": "sandbox:my-extension:round", "data": {"number": 2}} == plain
    assert {"event": "sandbox:my-extension:round", "data": ["long"] * 1_000} == compressed


def has_no_websocket() -> bool:
    """Whether this Node.js is older than 22."""
    printed = subprocess.run(["node", "-p", "typeof WebSocket"], capture_output=True, text=True, check=True, timeout=60)
    return printed.stdout.strip() == "undefined"


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "js"])
def test_a_client_of_the_page_reads_the_state_and_an_update(live: LiveServer, tmp_path: Path, language: str) -> None:
    [text] = [block.text for block in blocks(PAGE) if block.info == language and "EXTCLI_WS_URL" in block.text]
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
