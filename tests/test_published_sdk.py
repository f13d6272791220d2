"""The JavaScript SDK as published, unmodified, in Node: its calls resolve with what its callers read.

`make dev` fetches it from npm into `tests/sdk`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from running import Live

SDK = Path(__file__).parent / "sdk"


@pytest.fixture(scope="module")
def said(running_live: Live) -> dict[str, Any]:
    """What the SDK's calls came to, one after the other against an empty service."""
    if not shutil.which("node") or not (SDK / "node_modules").is_dir():
        pytest.skip("needs Node.js and `make dev`")
    running_live.reset()
    command = ["node", str(SDK / "calls.js"), running_live.url]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert 0 == result.returncode, result.stderr
    return dict(json.loads(result.stdout.splitlines()[-1]))


def test_a_session_loads_and_knows_its_user_and_the_time(said: dict[str, Any]):
    assert {"role": "viewer", "id": "5551"} == said["user"]
    assert said["clockOffset"] < 5_000


def test_a_vote_is_read_flat_as_published_pages_do(said: dict[str, Any]):
    assert (1, 3, [0, 0, 0, 1], 3) == (
        said["vote"]["count"],
        said["vote"]["mean"],
        said["vote"]["specific"][:4],
        said["vote"]["vote"],
    )
    assert "vote" not in said["poll"]
    assert [("5551", 3)] == [(each["identifier"], each["value"]) for each in said["log"]["result"]]


def test_an_answer_is_accepted_with_the_one_before_it(said: dict[str, Any]):
    assert {"accepted": True} == said["firstAnswer"]
    assert {"accepted": True, "original": "blue"} == said["secondAnswer"]
    assert {"data": [{"key": "red", "score": 1}]} == said["ranking"]
    assert {"data": []} == said["clearedRanking"]


def test_a_buffer_carries_the_fields_that_clients_read(said: dict[str, Any]):
    (entry,) = said["buffer"]["data"]

    assert ("777", "U5551", "5551", {"rating": 5}) == (
        entry["channel_id"],
        entry["opaque_user_id"],
        entry["user_id"],
        entry["data"],
    )
    assert entry["observed"] == said["buffer"]["latest"]


def test_stores_are_set_patched_and_read_together(said: dict[str, Any]):
    assert {
        "extension": {"season": 3},
        "channel": {"round": 4},
        "viewer": {"team": "red"},
        "extension_viewer": {"xp": 120},
    } == said["allState"]
    assert {"5551": {"xp": 120, "hello": "world"}, "12422": {"foo": "bar"}} == said["manyViewers"]
    assert {"key": 1} == said["secretState"]
    assert {"channel": {"theme": "dark"}, "extension": {"release": "2026-11-21"}} == said["config"]
    assert {"fires": 2} == said["jsonStore"]


def test_shared_ids_are_listed_to_an_end(said: dict[str, Any]):
    assert {"next": "0", "results": [{"twitch_id": each} for each in ("5551", "777", "9001")]} == said["userIds"]


@pytest.mark.ruling("W4")
def test_a_refusal_rejects_with_a_reason(said: dict[str, Any]):
    assert {"clear": "role is not authorized", "value": "Invalid body", "jsonStore": "Not Found"} == {
        name: error["reason"] for name, error in said["refused"].items()
    }
