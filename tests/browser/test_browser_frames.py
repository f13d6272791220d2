"""The published SDK in frames in Chromium, with the service's stand-in for the platform's helper."""

from __future__ import annotations

import pytest

from support.browser import ScriptOutput, browse_pages, run_once
from support.service import LiveServer

FRAMES = ("first", "second", "broadcaster")


@pytest.fixture(scope="module")
def seen(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """What happened in the frames of two viewers and a broadcaster."""
    return run_once(
        tmp_path_factory, "browser-frames", lambda: browse_pages(tmp_path_factory, running_live, "browser_frames.js")
    )


@pytest.mark.parametrize(
    ("frame", "role", "user"),
    [("first", "viewer", "5551"), ("second", "viewer", "5552"), ("broadcaster", "broadcaster", "777")],
)
def test_the_sdk_takes_a_frame_for_the_platform_and_is_who_the_frame_says(
    seen: ScriptOutput, frame: str, role: str, user: str
):
    assert {"onPlatform": True, "role": role, "id": user, "opaque": f"U{user}", "linked": True} == seen["who"][frame]


def test_two_viewers_votes_are_counted_for_the_broadcaster(seen: ScriptOutput):
    assert (2, [0, 1, 1]) == (seen["poll"]["count"], seen["poll"]["specific"][:3])


@pytest.mark.parametrize("frame", range(3), ids=FRAMES)
def test_a_broadcast_is_heard_in_every_frame_the_extensions_too(seen: ScriptOutput, frame: int):
    assert [[{"motd": "hi"}, "motd"], [{"motd": "to all"}, "motd"]] == seen["heard"][frame]["motd"]


def test_a_whisper_is_heard_in_the_frame_of_its_user_only_even_where_another_listens_for_it(seen: ScriptOutput):
    whisper = [{"for": "the first"}, "secret"]

    assert [[whisper], [], []] == [heard["whisper"] for heard in seen["heard"]]
    assert [[whisper], [], []] == [heard["foreign"] for heard in seen["heard"]]


@pytest.mark.parametrize("frame", range(3), ids=FRAMES)
def test_what_is_sent_past_the_sdk_is_heard_as_it_was_sent(seen: ScriptOutput, frame: int):
    envelope = '{"event":"sandbox:my-extension:motd","data":{"motd":"hi"}}'

    assert [["broadcast", "application/json", envelope], ["broadcast", "text/plain", "plain words"]] == sorted(
        seen["heard"][frame]["plain"]
    )


def test_a_broadcast_of_the_extension_comes_as_global(seen: ScriptOutput):
    message = '{"event":"sandbox:my-extension:motd","data":{"motd":"to all"}}'

    assert [["global", "application/json", message]] == seen["heard"][0]["global"]


def test_a_purchase_is_taken_by_the_service_and_an_unknown_one_is_cancelled(seen: ScriptOutput):
    assert {"products": 1, "sku": "hat", "answer": {}, "other": "cancelled"} == seen["purchases"]


def test_the_rest_of_the_helper_answers(seen: ScriptOutput):
    assert {"configuration": {"version": "1", "content": "content"}, "followed": [True, "channel"]} == seen["rest"]


def test_who_names_no_user_is_anonymous_and_gets_another_token_after_25_minutes(seen: ScriptOutput):
    assert {"early": 1, "anonymous": True, "id": None, "isLinked": False} == seen["refresh"]


def test_nothing_complains_is_refused_or_asked_for_elsewhere(seen: ScriptOutput):
    record = seen["record"]

    assert ([], [], []) == (record["complaints"], record["refusals"], record["strangers"])
