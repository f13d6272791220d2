"""The published SDK in frames in Chromium, with the service's replacement of the platform's helper (ruling B5)."""

from __future__ import annotations

import pytest

from support.browser import ScriptOutput, browse_pages, run_once
from support.service import LiveServer

pytestmark = pytest.mark.long

FRAMES = ("first", "second", "broadcaster")


@pytest.fixture(scope="module")
def result(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """Return what happens in the frames of two viewers and a broadcaster."""
    return run_once(
        tmp_path_factory, "browser-frames", lambda: browse_pages(tmp_path_factory, running_live, "browser_frames.js")
    )


@pytest.mark.parametrize(
    ("frame", "role", "user"),
    [("first", "viewer", "5551"), ("second", "viewer", "5552"), ("broadcaster", "broadcaster", "777")],
)
def test_the_sdk_detects_the_platform_and_has_the_frames_user(result: ScriptOutput, frame: str, role: str, user: str):
    assert {"onPlatform": True, "role": role, "id": user, "opaque": f"U{user}", "linked": True} == result["users"][
        frame
    ]


def test_the_broadcaster_sees_the_votes_of_two_viewers(result: ScriptOutput):
    assert (2, [0, 1, 1]) == (result["poll"]["count"], result["poll"]["specific"][:3])


@pytest.mark.parametrize("frame", range(3), ids=FRAMES)
def test_every_frame_receives_channel_and_extension_broadcasts(result: ScriptOutput, frame: int):
    assert [[{"motd": "hi"}, "motd"], [{"motd": "to all"}, "motd"]] == result["received"][frame]["motd"]


def test_only_the_frame_of_its_user_receives_a_whisper(result: ScriptOutput):
    whisper = [{"for": "the first"}, "secret"]

    assert [[whisper], [], []] == [received["whisper"] for received in result["received"]]
    assert [[whisper], [], []] == [received["otherUser"] for received in result["received"]]


@pytest.mark.parametrize("frame", range(3), ids=FRAMES)
def test_a_message_sent_without_the_sdk_arrives_unchanged(result: ScriptOutput, frame: int):
    envelope = '{"event":"sandbox:my-extension:motd","data":{"motd":"hi"}}'

    assert [["broadcast", "application/json", envelope], ["broadcast", "text/plain", "plain words"]] == sorted(
        result["received"][frame]["plain"]
    )


def test_an_extension_broadcast_has_the_target_global(result: ScriptOutput):
    message = '{"event":"sandbox:my-extension:motd","data":{"motd":"to all"}}'

    assert [["global", "application/json", message]] == result["received"][0]["global"]


def test_a_frame_receives_vote_updates(result: ScriptOutput):
    assert ["heard", 1, 3, "vote_update:heard"] == result["voteEvents"]


def test_a_purchase_is_posted_and_an_unknown_product_is_cancelled(result: ScriptOutput):
    assert {"products": 1, "sku": "hat", "answer": {}, "other": "cancelled"} == result["purchases"]


def test_configuration_and_follow_callbacks_work(result: ScriptOutput):
    assert {"configuration": {"version": "1", "content": "content"}, "followed": [True, "channel"]} == result[
        "otherFunctions"
    ]


def test_an_anonymous_frame_refreshes_its_token_every_25_minutes(result: ScriptOutput):
    assert {"early": 1, "anonymous": True, "id": None, "isLinked": False} == result["refresh"]


def test_pages_log_no_errors_and_contact_no_other_origin(result: ScriptOutput):
    log = result["log"]

    assert ([], [], []) == (log["consoleErrors"], log["errorResponses"], log["unexpectedOrigins"])
