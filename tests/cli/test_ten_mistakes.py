"""Mistakes of a first hour that get 200: what commands print. `features/test_silent_mistakes.py` has the rules."""

from __future__ import annotations

import httpx
import pytest

from dashboard.test_rig_page import rig, serving
from support.html_pages import read_page
from support.service import CHANNEL, CLIENT_ID, LiveServer
from support.socket_client import linked_game


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("vote cast lunhc --value 1", "lunch"),
        ("json-store get levle", "level"),
        ("vote get lunch --client-id my-extention", CLIENT_ID),
        (f"broadcast send partty {{}} --channel {CHANNEL}", "party"),
    ],
)
def test_the_command_that_makes_a_mistake_prints_the_hint_of_the_service(extcli, live: LiveServer, command, hint):
    extcli("vote", "cast", "lunch", "--value", "1")
    extcli("json-store", "set", "level", "a=1", "--as", "broadcaster")
    with linked_game(live) as game:
        game.request("subscribe", "broadcast", {"topic_id": "party"})

        said = extcli(*command.split()).stderr

    assert [hint] == [line.rpartition("did you mean ")[2].rstrip("?") for line in said.splitlines() if "hint: " in line]


def test_logs_and_explain_show_the_hint(extcli, viewer):
    viewer().post("vote?id=lunch", json={"value": 1})
    id = viewer().post("vote?id=lunhc", json={"value": 1}).headers["x-request-id"]

    assert "did you mean lunch?" in extcli("logs", "-o", "plain").rows[-1][-1]
    assert "did you mean lunch?" in " ".join(extcli("explain", id, "-o", "table").stdout.split())


def test_logs_show_the_client_ids_if_there_are_several(extcli):
    extcli("vote", "cast", "--value", "1")
    assert CLIENT_ID not in extcli("logs", "-o", "table").stdout
    extcli("vote", "cast", "--value", "1", "--client-id", "other")

    text = " ".join(extcli("logs", "-o", "table").stdout.split())
    assert f"viewer:U1@1001 of {CLIENT_ID}" in text
    assert "viewer:U1@1001 of other" in text


def test_explain_shows_the_latest_refused_preflight(extcli, live: LiveServer):
    headers = {"Origin": "https://page.example", "Access-Control-Request-Headers": "x-panel"}
    httpx.options(f"{live.url}/v1/e/vote", headers=headers)

    assert "x-panel" in extcli("explain", "-o", "table").stdout


def test_the_rig_alone_knows_a_page_without_sdk_js(live: LiveServer):
    scripts = b"<script src='/_emulator/platform-helper.js'></script><script src='sdk.umd.js'>"
    with serving({"/": b"HTTP/1.1 200 OK\r\n\r\n" + scripts}) as server:
        shown = read_page(rig(live, url=f"{server.url}/")).text

    assert f'<script src="{live.url}/_emulator/sdk.js"></script>' in shown
