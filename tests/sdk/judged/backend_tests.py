"""The same with pytest, and a backend in Python."""

import base64
import os
from pathlib import Path

import httpx
import jwt

from extcli.testing import Namespace


def count(url: str, poll: str) -> int:
    """Read the number of votes as the backend, with a token of its own."""
    wrong = os.environ.get("WRONG_KEY")
    secret = wrong.encode() if wrong else base64.b64decode(Path(os.environ["EXTCLI_SECRET_FILE"]).read_text())
    now = httpx.get(f"{url}/_emulator/clock").json()["now"] // 1000
    token = jwt.encode({"exp": now + 60, "role": "backend", "channel_id": "1001"}, secret)
    headers = {"Authorization": f"{os.environ['EXTCLI_CLIENT_ID']} {token}"}
    return (
        httpx.get(f"{url}/v1/e/vote", params={"id": poll}, headers=headers).raise_for_status().json()["stats"]["count"]
    )


def test_the_backend_counts_votes_also_eight_days_later(extcli: Namespace) -> None:
    held = extcli.viewer("U1")
    held.vote("boss", 1)
    assert count(extcli.url, "boss") == 1
    extcli.clock.advance("8d")
    assert count(extcli.url, "boss") == 0
    held.vote("boss", 1)
    assert count(extcli.url, "boss") == 1
    events, game = extcli.listen("over"), extcli.game()
    extcli.backend.broadcast("over", 1)
    assert events.next().data == 1
    game.request("get", "state", {"state_id": "channel"})
