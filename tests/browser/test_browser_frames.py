"""The published SDK in frames in Chromium, with the service's replacement of the platform's helper (ruling B5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.browser import browse_pages
from support.service import LiveServer

pytestmark = pytest.mark.long


def test_the_sdk_in_frames_acts_as_on_the_platform(live: LiveServer, tmp_path: Path):
    result = browse_pages(tmp_path, live, "browser_frames.js")
    # The SDK detects the platform and has the frames user
    for frame, role, user in [
        ("first", "viewer", "5551"),
        ("second", "viewer", "5552"),
        ("broadcaster", "broadcaster", "777"),
    ]:
        assert {"onPlatform": True, "role": role, "id": user, "opaque": f"U{user}", "linked": True} == result["users"][
            frame
        ]

    # Every frame receives channel and extension broadcasts
    for frame in range(3):
        assert [[{"motd": "hi"}, "motd"], [{"motd": "to all"}, "motd"]] == result["received"][frame]["motd"]

    # Only the frame of its user receives a whisper
    whisper = [{"for": "the first"}, "secret"]

    assert [[whisper], [], []] == [received["whisper"] for received in result["received"]]
    assert [[whisper], [], []] == [received["otherUser"] for received in result["received"]]

    # A message sent without the SDK arrives unchanged
    for frame in range(3):
        envelope = '{"event":"sandbox:my-extension:motd","data":{"motd":"hi"}}'

        assert [["broadcast", "application/json", envelope], ["broadcast", "text/plain", "plain words"]] == sorted(
            result["received"][frame]["plain"]
        )

    # An extension broadcast has the target global
    message = '{"event":"sandbox:my-extension:motd","data":{"motd":"to all"}}'

    assert [["global", "application/json", message]] == result["received"][0]["global"]

    # A purchase is posted and an unknown product is cancelled
    assert {"products": 1, "sku": "hat", "answer": {}, "other": "cancelled"} == result["purchases"]

    # An anonymous frame refreshes its token every 25 minutes
    assert {"early": 1, "anonymous": True, "id": None, "isLinked": False} == result["refresh"]

    # Pages log no errors and contact no other origin
    log = result["log"]

    assert ([], [], []) == (log["consoleErrors"], log["errorResponses"], log["unexpectedOrigins"])
