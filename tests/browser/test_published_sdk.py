"""The published SDK, unmodified, in Node: its calls resolve with the fields that callers read (ruling W4)."""

from __future__ import annotations

from typing import Any

import pytest

from support.browser import ScriptOutput, run_once, run_script
from support.service import Client, LiveServer, RunningService

FORBIDDEN = "role is not authorized"
MESSAGES = {"listen", "unlisten", "send"}
"""Methods that `test_published_sdk_messages.py` covers."""
PLATFORM_ONLY = {
    "onContextUpdate", "onHighlightChanged", "onVisibilityChanged", "onPositionChanged", "beginPurchase", "getPrices",
    "onReloadEntitlements",
}  # fmt: skip
"""Methods that only call the platform's helper."""
WITHOUT_REQUEST = {"constructor", "setup", "updateUser", "onUserUpdate", "beginDebugHelixTokenFlow"}
OTHER_SERVICES = {"sendAnalyticsEvent"}
"""Methods that call a service that is not emulated."""


@pytest.fixture(scope="module")
def script(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """Return the results of all calls, made in sequence against an empty service."""

    def produce() -> ScriptOutput:
        running_live.reset()
        return run_script("calls.js", running_live.url)

    return run_once(tmp_path_factory, "sdk-calls", produce)


@pytest.fixture
def resolved(script: ScriptOutput) -> dict[str, Any]:
    """Return what calls resolved with, by name."""
    return dict(script["resolved"])


@pytest.fixture
def reason(script: ScriptOutput) -> dict[str, str]:
    """Return the `reason` of calls that rejected, by name."""
    return {name: error.get("reason", error) for name, error in script["rejected"].items()}


def test_the_tests_call_every_method_that_sends_a_request(script: ScriptOutput):
    other = MESSAGES | PLATFORM_ONLY | WITHOUT_REQUEST | OTHER_SERVICES

    assert set(script["methods"]) == set(script["called"]) | other


def test_only_the_expected_calls_reject(reason: dict[str, str]):
    assert {
        "fractionalVote", "clearingAsViewer", "logAsViewer", "clearingByAlias", "bufferWithoutStart",
        "channelStateSetByViewer", "secretStateAsViewer", "badPatch", "noJsonStore", "wrongPin", "pinOfViewer",
        "codesPutByViewer", "broadcastByGet", "unknownEndpoint", "userIdsAsViewer", "questionAddedByViewer",
        "voteOnInactive", "resultsWithoutWinner",
    } == set(reason)  # fmt: skip


def test_a_session_loads_with_its_user_and_the_services_time(resolved: dict[str, Any]):
    assert {"role": "viewer", "id": "5551", "opaque": "U5551"} == resolved["user"]
    assert resolved["clockOffset"] < 5_000
    assert ("viewer", "777", "5551", "U5551", "sdk-extension") == tuple(
        resolved["userInfo"][name] for name in ("role", "channel_id", "user_id", "opaque_user_id", "extension_id")
    )


def test_a_vote_resolves_with_flat_fields(resolved: dict[str, Any]):
    assert (1, 3, 3, 0, [0, 0, 0, 1], 3) == (
        resolved["vote"]["count"],
        resolved["vote"]["mean"],
        resolved["vote"]["sum"],
        resolved["vote"]["stddev"],
        resolved["vote"]["specific"][:4],
        resolved["vote"]["vote"],
    )
    assert 64 == len(resolved["vote"]["specific"])
    assert "vote" not in resolved["poll"]
    assert [("5551", 3)] == [(each["identifier"], each["value"]) for each in resolved["log"]["result"]]


def test_a_poll_without_an_id_is_the_default_poll(resolved: dict[str, Any]):
    assert 2 == resolved["defaultVote"]["vote"]
    assert (1, 2) == (resolved["defaultPoll"]["count"], resolved["defaultPoll"]["vote"])


def test_a_refused_vote_rejects_with_a_reason(reason: dict[str, str]):
    assert ("Invalid body", FORBIDDEN, FORBIDDEN) == (
        reason["fractionalVote"],
        reason["clearingAsViewer"],
        reason["logAsViewer"],
    )


def test_a_second_answer_resolves_with_the_first(resolved: dict[str, Any]):
    assert {"accepted": True} == resolved["firstAnswer"]
    assert {"accepted": True, "original": "blue"} == resolved["secondAnswer"]
    assert {"data": [{"key": "red", "score": 1}]} == resolved["ranking"] == resolved["rankingByAlias"]
    assert {} == resolved["clearing"]
    assert {"data": []} == resolved["clearedRanking"]


def test_clear_ranking_of_the_sdk_recurses_endlessly(script: ScriptOutput):
    assert "RangeError" == script["rejected"]["clearingByAlias"]["name"]


def test_a_buffer_entry_has_the_fields_that_clients_read(resolved: dict[str, Any]):
    (entry,) = resolved["buffer"]["data"]

    assert {} == resolved["accumulated"]
    assert ("777", "U5551", "5551", {"rating": 5}) == (
        entry["channel_id"],
        entry["opaque_user_id"],
        entry["user_id"],
        entry["data"],
    )
    assert entry["observed"] == resolved["buffer"]["latest"]
    assert {"data": [], "latest": resolved["buffer"]["latest"]} == resolved["bufferAfterwards"]


def test_a_buffer_without_a_start_rejects_because_the_sdk_sends_undefined(reason: dict[str, str]):
    assert "Malformed start parameter" == reason["bufferWithoutStart"]


def test_each_store_is_set_and_read(resolved: dict[str, Any], reason: dict[str, str]):
    written = ("channelStateSet", "extensionStateSet", "viewerStateSet", "extensionViewerStateSet", "secretStateSet")
    assert [{}] * 5 == [resolved[name] for name in written]
    assert {"round": 4} == resolved["channelState"]
    assert {"season": 3} == resolved["extensionState"]
    assert {"team": "red"} == resolved["viewerState"]
    assert {"xp": 120} == resolved["extensionViewerState"]
    assert {} == resolved["viewerStateOfAnother"]
    assert {"key": 1} == resolved["secretState"]
    assert (FORBIDDEN, FORBIDDEN) == (reason["channelStateSetByViewer"], reason["secretStateAsViewer"])


def test_all_state_stores_are_read_at_once(resolved: dict[str, Any]):
    assert {
        "extension": {"season": 3},
        "channel": {"round": 4},
        "viewer": {"team": "red"},
        "extension_viewer": {"xp": 120},
    } == resolved["allState"]


def test_an_admin_patches_and_reads_the_stores_of_many_viewers(resolved: dict[str, Any]):
    assert {} == resolved["manyPatched"]
    assert {"5551": {"xp": 120, "hello": "world"}, "12422": {"foo": "bar"}} == resolved["manyViewers"]


def test_the_inner_client_patches_stores(resolved: dict[str, Any], reason: dict[str, str]):
    patched = ("extensionStatePatched", "channelStatePatched", "viewerStatePatched", "secretStatePatched")
    assert [{}] * 4 == [resolved[name] for name in patched]
    assert {
        "extension": {"season": 3, "patched": True},
        "channel": {"round": 4, "patched": True},
        "viewer": {"patched": True},
        "extension_viewer": {"xp": 120, "hello": "world"},
    } == resolved["patchedState"]
    assert {"key": 1, "patched": True} == resolved["patchedSecret"]
    assert "Invalid patch" == reason["badPatch"]


def test_config_stores_are_set_patched_and_read(resolved: dict[str, Any]):
    written = ("channelConfigSet", "extensionConfigSet", "channelConfigsPatched", "extensionConfigPatched")
    channel, extension = {"theme": "dark"}, {"release": "2026-11-21"}

    assert [{}] * 4 == [resolved[name] for name in written]
    assert (channel, extension) == (resolved["channelConfig"], resolved["extensionConfig"])
    assert {"channel": channel, "extension": extension} == resolved["config"]
    assert {"channel": channel | {"foo": "bar"}, "extension": extension | {"a": 1}} == resolved["patchedConfig"]


def test_a_json_store_is_read_and_an_unwritten_one_rejects(resolved: dict[str, Any], reason: dict[str, str]):
    assert {"fires": 2} == resolved["jsonStore"]
    assert {"fires": 0} == resolved["defaultJsonStore"]
    assert "Not Found" == reason["noJsonStore"]


def test_a_validated_pin_makes_its_token_valid_until_revoked(resolved: dict[str, Any]):
    assert ({"exists": False}, 401) == (resolved["noPinToken"], resolved["statusBeforePin"])
    assert ({}, {"exists": True}, 200) == (resolved["validated"], resolved["pinToken"], resolved["statusAfterPin"])
    assert ({}, {"exists": False}, 401) == (
        resolved["revoked"],
        resolved["revokedPinToken"],
        resolved["statusAfterRevocation"],
    )


def test_validating_a_pin_rejects_for_a_wrong_pin_and_for_a_viewer(reason: dict[str, str]):
    assert ("Invalid PIN", FORBIDDEN) == (reason["wrongPin"], reason["pinOfViewer"])


@pytest.mark.parametrize("call", ["gamePin", "gamePinWithStringBody"])
def test_a_pin_for_a_game_has_both_names(resolved: dict[str, Any], call: str):
    assert 6 == len(resolved[call]["token"])
    assert resolved[call]["pin"] == resolved[call]["token"]


def test_a_reward_code_is_redeemed_once(resolved: dict[str, Any], reason: dict[str, str]):
    assert ({}, FORBIDDEN) == (resolved["codesPut"], reason["codesPutByViewer"])
    assert [[0, 0], [1, 0], [0, 0]] == [
        resolved[name]["eligible"] for name in ("notYetEligible", "eligible", "eligibleAfterwards")
    ]
    assert {"code": "HAT-1", "all_prizes": ["HAT-1"]} == resolved["redeemed"]
    assert {"all_prizes": ["HAT-1"]} == resolved["redeemedTooOften"]
    assert {"redeemed": [["HAT-1"], []]} == resolved["held"]


def test_a_get_broadcast_needs_a_query_because_the_sdk_drops_its_body(resolved: dict[str, Any], reason: dict[str, str]):
    assert "Invalid body" == reason["broadcastByGet"]
    assert ({}, {}) == (resolved["broadcastByGetWithQuery"], resolved["broadcastByPost"])


def test_the_datastream_accepts_an_event(resolved: dict[str, Any]):
    assert {} == resolved["datastream"]


def test_an_unknown_endpoint_rejects(reason: dict[str, str]):
    assert "Not Found" == reason["unknownEndpoint"]


def test_shared_ids_are_listed(resolved: dict[str, Any], reason: dict[str, str]):
    assert {"next": "0", "results": [{"twitch_id": each} for each in ("5551", "777", "9001")]} == resolved["userIds"]
    assert FORBIDDEN == reason["userIdsAsViewer"]


def test_a_purchase_of_the_development_mode_is_posted(resolved: dict[str, Any]):
    assert [] == resolved["noProducts"]
    assert [{"sku": "SKU1", "displayName": "A hat", "cost": {"amount": 5, "type": "bits"}}] == resolved["products"]
    assert {"product": "SKU1", "answer": {}} == resolved["purchase"]


def test_a_viewer_joins_the_team_of_the_channel(resolved: dict[str, Any]):
    assert {"id": ""} == resolved["noTeam"]
    assert {"id": "777"} == resolved["teamJoined"] == resolved["team"]


def test_an_admin_edits_trivia_questions(resolved: dict[str, Any], reason: dict[str, str]):
    described = {"id": "q1", "name": "Q1", "short_name": "q1", "description": "What is q1?"}

    assert described == {name: resolved["questionAdded"][name] for name in described}
    assert [["o1"], ["o1", "o2"], ["o1", "o2", "o3"], ["o1", "o2"]] == [
        [option["id"] for option in resolved[name]["options"]]
        for name in ("optionAdded", "secondOptionAdded", "thirdOptionAdded", "optionRemoved")
    ]
    assert FORBIDDEN == reason["questionAddedByViewer"]
    assert ({}, {"questions": []}) == (resolved["questionRemoved"], resolved["questionsAfterwards"])


def test_the_state_of_a_trivia_question_decides_which_calls_resolve(resolved: dict[str, Any], reason: dict[str, str]):
    assert ({"questions": []}, "Not Found") == (resolved["inactiveQuestions"], reason["voteOnInactive"])
    assert ({"state": "state-unlocked"}, {}, {}) == (
        resolved["unlocked"],
        resolved["triviaVote"],
        resolved["triviaVoteOfBroadcaster"],
    )
    (open_question,) = resolved["questions"]["questions"]
    assert ("state-unlocked", {"you": "o1"}) == (open_question["state"], open_question["results"])
    assert ("Invalid winner", {"state": "state-results"}) == (reason["resultsWithoutWinner"], resolved["results"])
    assert {"you": "o1", "winner": "o1"} == resolved["question"]["results"]


def test_the_trivia_leaderboard_has_the_fields_that_callers_read(resolved: dict[str, Any]):
    (team,) = resolved["leaderboard"]["leaderboard"]
    score = team["questions"]["q1"]

    assert ("777", {"q1"}) == (team["team_id"], set(team["questions"]))
    assert ("q1", True, 2, 1) == (
        score["question_id"],
        score["broadcaster_correct"],
        score["team_votes"],
        score["percent_correct"],
    )


@pytest.mark.slow
def test_all_calls_have_the_same_outcome_in_a_forked_namespace(script: ScriptOutput, running_live: LiveServer):
    control = Client(base_url=running_live.url)
    control.post("/_ns/sdk-base").raise_for_status()
    base = RunningService(f"{running_live.url}/_ns/sdk-base")
    base.client("viewer", user="1", channel="777").post("vote?id=before", json={"value": 1}).raise_for_status()
    control.post("/_ns/sdk-fork?from=sdk-base").raise_for_status()
    fork = RunningService(f"{running_live.url}/_ns/sdk-fork")
    try:
        forked = run_script("calls.js", fork.url)

        assert set(script["resolved"]) == set(forked["resolved"])
        assert {name: error.get("reason", error) for name, error in script["rejected"].items()} == {
            name: error.get("reason", error) for name, error in forked["rejected"].items()
        }
        assert 1 == fork.client("viewer", user="2", channel="777").get("vote?id=before").json()["count"]
    finally:
        for name in ("sdk-base", "sdk-fork"):
            control.delete(f"/_ns/{name}").raise_for_status()
