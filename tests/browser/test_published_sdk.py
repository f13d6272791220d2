"""The JavaScript SDK as published, unmodified, in Node: its calls resolve with what its callers read."""

from __future__ import annotations

from typing import Any

import pytest

from support.browser import ScriptOutput, run_once, run_script
from support.service import LiveServer

FORBIDDEN = "role is not authorized"
HEARD_AND_SENT = {"listen", "unlisten", "send"}
"""What `test_published_sdk_messages.py` is about."""
OF_THE_PLATFORM = {
    "onContextUpdate", "onHighlightChanged", "onVisibilityChanged", "onPositionChanged", "beginPurchase", "getPrices",
    "onReloadEntitlements",
}  # fmt: skip
"""What only passes on the platform's own helper."""
WITHOUT_A_REQUEST = {"constructor", "setup", "updateUser", "onUserUpdate", "beginDebugHelixTokenFlow"}
ELSEWHERE = {"sendAnalyticsEvent"}
"""What goes to a service that is not emulated."""


@pytest.fixture(scope="module")
def story(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """All calls, one after the other against an empty service."""

    def produce() -> ScriptOutput:
        running_live.reset()
        return run_script("calls.js", running_live.url)

    return run_once(tmp_path_factory, "sdk-calls", produce)


@pytest.fixture
def said(story: ScriptOutput) -> dict[str, Any]:
    """What calls resolved with."""
    return dict(story["said"])


@pytest.fixture
def reason(story: ScriptOutput) -> dict[str, str]:
    """The `reason` of the calls that rejected."""
    return {name: error.get("reason", error) for name, error in story["refused"].items()}


def test_every_method_that_makes_a_request_is_called_here(story: ScriptOutput):
    elsewhere = HEARD_AND_SENT | OF_THE_PLATFORM | WITHOUT_A_REQUEST | ELSEWHERE

    assert set(story["methods"]) == set(story["called"]) | elsewhere


def test_nothing_is_refused_but_what_is_meant_to_be(reason: dict[str, str]):
    assert {
        "fractionalVote", "clearingAsViewer", "logAsViewer", "clearingByItsOtherName", "bufferWithoutStart",
        "channelStateSetByViewer", "secretStateAsViewer", "badPatch", "noJsonStore", "wrongPin", "pinOfViewer",
        "codesPutByViewer", "broadcastByGet", "unknownEndpoint", "userIdsAsViewer", "questionAddedByViewer",
        "voteOnInactive", "resultsWithoutWinner",
    } == set(reason)  # fmt: skip


def test_a_session_loads_and_knows_its_user_and_the_time(said: dict[str, Any]):
    assert {"role": "viewer", "id": "5551", "opaque": "U5551"} == said["user"]
    assert said["clockOffset"] < 5_000
    assert ("viewer", "777", "5551", "U5551", "sdk-extension") == tuple(
        said["userInfo"][name] for name in ("role", "channel_id", "user_id", "opaque_user_id", "extension_id")
    )


def test_a_vote_is_read_flat_as_published_pages_do(said: dict[str, Any]):
    assert (1, 3, 3, 0, [0, 0, 0, 1], 3) == (
        said["vote"]["count"],
        said["vote"]["mean"],
        said["vote"]["sum"],
        said["vote"]["stddev"],
        said["vote"]["specific"][:4],
        said["vote"]["vote"],
    )
    assert 64 == len(said["vote"]["specific"])
    assert "vote" not in said["poll"]
    assert [("5551", 3)] == [(each["identifier"], each["value"]) for each in said["log"]["result"]]


def test_a_poll_without_a_name_is_the_default_one(said: dict[str, Any]):
    assert 2 == said["voteOnTheDefault"]["vote"]
    assert (1, 2) == (said["defaultPoll"]["count"], said["defaultPoll"]["vote"])


@pytest.mark.ruling("W4")
def test_a_vote_that_the_service_refuses_rejects_with_a_reason(reason: dict[str, str]):
    assert ("Invalid body", FORBIDDEN, FORBIDDEN) == (
        reason["fractionalVote"],
        reason["clearingAsViewer"],
        reason["logAsViewer"],
    )


def test_an_answer_is_accepted_with_the_one_before_it(said: dict[str, Any]):
    assert {"accepted": True} == said["firstAnswer"]
    assert {"accepted": True, "original": "blue"} == said["secondAnswer"]
    assert {"data": [{"key": "red", "score": 1}]} == said["ranking"] == said["rankingByItsOtherName"]
    assert {} == said["clearing"]
    assert {"data": []} == said["clearedRanking"]


def test_clear_ranking_of_the_sdk_only_calls_itself(story: ScriptOutput):
    assert "RangeError" == story["refused"]["clearingByItsOtherName"]["name"]


def test_a_buffer_carries_the_fields_that_clients_read(said: dict[str, Any]):
    (entry,) = said["buffer"]["data"]

    assert {} == said["accumulated"]
    assert ("777", "U5551", "5551", {"rating": 5}) == (
        entry["channel_id"],
        entry["opaque_user_id"],
        entry["user_id"],
        entry["data"],
    )
    assert entry["observed"] == said["buffer"]["latest"]
    assert {"data": [], "latest": said["buffer"]["latest"]} == said["bufferAfterwards"]


def test_a_buffer_asked_for_without_a_start_is_refused_as_the_sdk_asks_from_undefined_on(reason: dict[str, str]):
    assert "Malformed start parameter" == reason["bufferWithoutStart"]


def test_stores_are_set_and_read_one_by_one(said: dict[str, Any], reason: dict[str, str]):
    written = ("channelStateSet", "extensionStateSet", "viewerStateSet", "extensionViewerStateSet", "secretStateSet")
    assert [{}] * 5 == [said[name] for name in written]
    assert {"round": 4} == said["channelState"]
    assert {"season": 3} == said["extensionState"]
    assert {"team": "red"} == said["viewerState"]
    assert {"xp": 120} == said["extensionViewerState"]
    assert {} == said["viewerStateOfAnother"]
    assert {"key": 1} == said["secretState"]
    assert (FORBIDDEN, FORBIDDEN) == (reason["channelStateSetByViewer"], reason["secretStateAsViewer"])


def test_stores_are_read_together(said: dict[str, Any]):
    assert {
        "extension": {"season": 3},
        "channel": {"round": 4},
        "viewer": {"team": "red"},
        "extension_viewer": {"xp": 120},
    } == said["allState"]


def test_the_stores_of_many_viewers_are_patched_and_read_by_an_admin(said: dict[str, Any]):
    assert {} == said["manyPatched"]
    assert {"5551": {"xp": 120, "hello": "world"}, "12422": {"foo": "bar"}} == said["manyViewers"]


def test_stores_are_patched_by_the_inner_client(said: dict[str, Any], reason: dict[str, str]):
    patched = ("extensionStatePatched", "channelStatePatched", "viewerStatePatched", "secretStatePatched")
    assert [{}] * 4 == [said[name] for name in patched]
    assert {
        "extension": {"season": 3, "patched": True},
        "channel": {"round": 4, "patched": True},
        "viewer": {"patched": True},
        "extension_viewer": {"xp": 120, "hello": "world"},
    } == said["patchedState"]
    assert {"key": 1, "patched": True} == said["patchedSecret"]
    assert "Invalid patch" == reason["badPatch"]


def test_configurations_are_set_patched_and_read_alone_and_together(said: dict[str, Any]):
    written = ("channelConfigSet", "extensionConfigSet", "channelConfigsPatched", "extensionConfigPatched")
    channel, extension = {"theme": "dark"}, {"release": "2026-11-21"}

    assert [{}] * 4 == [said[name] for name in written]
    assert (channel, extension) == (said["channelConfig"], said["extensionConfig"])
    assert {"channel": channel, "extension": extension} == said["config"]
    assert {"channel": channel | {"foo": "bar"}, "extension": extension | {"a": 1}} == said["patchedConfig"]


def test_a_json_store_is_read_and_an_empty_one_rejects(said: dict[str, Any], reason: dict[str, str]):
    assert {"fires": 2} == said["jsonStore"]
    assert {"fires": 0} == said["defaultJsonStore"]
    assert "Not Found" == reason["noJsonStore"]


def test_a_pin_brings_its_token_to_life_until_all_are_revoked(said: dict[str, Any]):
    assert ({"exists": False}, 401) == (said["noPinToken"], said["statusBeforePin"])
    assert ({}, {"exists": True}, 200) == (said["validated"], said["pinToken"], said["statusAfterPin"])
    assert ({}, {"exists": False}, 401) == (said["revoked"], said["revokedPinToken"], said["statusAfterRevocation"])


def test_a_wrong_pin_rejects_and_only_a_broadcaster_may_enter_one(reason: dict[str, str]):
    assert ("Invalid PIN", FORBIDDEN) == (reason["wrongPin"], reason["pinOfViewer"])


@pytest.mark.parametrize("call", ["gamePin", "gamePinEncodedTwice"])
def test_a_pin_for_a_game_comes_under_both_names_however_its_body_was_encoded(said: dict[str, Any], call: str):
    assert 6 == len(said[call]["token"])
    assert said[call]["pin"] == said[call]["token"]


def test_a_reward_code_is_redeemed_once(said: dict[str, Any], reason: dict[str, str]):
    assert ({}, FORBIDDEN) == (said["codesPut"], reason["codesPutByViewer"])
    assert [[0, 0], [1, 0], [0, 0]] == [
        said[name]["eligible"] for name in ("notYetEligible", "eligible", "eligibleAfterwards")
    ]
    assert {"code": "HAT-1", "all_prizes": ["HAT-1"]} == said["redeemed"]
    assert {"all_prizes": ["HAT-1"]} == said["redeemedTooOften"]
    assert {"redeemed": [["HAT-1"], []]} == said["held"]


def test_a_get_broadcast_loses_its_body_on_the_way_and_is_refused_unless_its_query_says_all(
    said: dict[str, Any], reason: dict[str, str]
):
    assert "Invalid body" == reason["broadcastByGet"]
    assert ({}, {}) == (said["broadcastByGetWithQuery"], said["broadcastByPost"])


def test_what_is_posted_to_the_datastream_is_taken(said: dict[str, Any]):
    assert {} == said["datastream"]


def test_an_unknown_endpoint_rejects(reason: dict[str, str]):
    assert "Not Found" == reason["unknownEndpoint"]


def test_shared_ids_are_listed_to_an_end(said: dict[str, Any], reason: dict[str, str]):
    assert {"next": "0", "results": [{"twitch_id": each} for each in ("5551", "777", "9001")]} == said["userIds"]
    assert FORBIDDEN == reason["userIdsAsViewer"]


def test_a_purchase_of_the_development_mode_is_taken_by_the_service(said: dict[str, Any]):
    assert [] == said["noProducts"]
    assert [{"sku": "SKU1", "displayName": "A hat", "cost": {"amount": 5, "type": "bits"}}] == said["products"]
    assert {"product": "SKU1", "answer": {}} == said["purchase"]


def test_a_viewer_joins_the_team_of_the_channel(said: dict[str, Any]):
    assert {"id": ""} == said["noTeam"]
    assert {"id": "777"} == said["teamJoined"] == said["team"]


def test_trivia_questions_are_edited_by_an_admin(said: dict[str, Any], reason: dict[str, str]):
    described = {"id": "q1", "name": "Q1", "short_name": "q1", "description": "What is q1?"}

    assert described == {name: said["questionAdded"][name] for name in described}
    assert [["o1"], ["o1", "o2"], ["o1", "o2", "o3"], ["o1", "o2"]] == [
        [option["id"] for option in said[name]["options"]]
        for name in ("optionAdded", "secondOptionAdded", "thirdOptionAdded", "optionRemoved")
    ]
    assert FORBIDDEN == reason["questionAddedByViewer"]
    assert ({}, {"questions": []}) == (said["questionRemoved"], said["questionsAfterwards"])


def test_a_trivia_question_is_seen_voted_on_and_decided_as_its_state_allows(
    said: dict[str, Any], reason: dict[str, str]
):
    assert ({"questions": []}, "Not Found") == (said["inactiveQuestions"], reason["voteOnInactive"])
    assert ({"state": "state-unlocked"}, {}, {}) == (
        said["unlocked"],
        said["triviaVote"],
        said["triviaVoteOfBroadcaster"],
    )
    (open_question,) = said["questions"]["questions"]
    assert ("state-unlocked", {"you": "o1"}) == (open_question["state"], open_question["results"])
    assert ("Invalid winner", {"state": "state-results"}) == (reason["resultsWithoutWinner"], said["results"])
    assert {"you": "o1", "winner": "o1"} == said["question"]["results"]


def test_the_trivia_leaderboard_has_the_fields_that_callers_read(said: dict[str, Any]):
    (team,) = said["leaderboard"]["leaderboard"]
    score = team["questions"]["q1"]

    assert ("777", {"q1"}) == (team["team_id"], set(team["questions"]))
    assert ("q1", True, 2, 1) == (
        score["question_id"],
        score["broadcaster_correct"],
        score["team_votes"],
        score["percent_correct"],
    )
