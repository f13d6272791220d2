"""The published SDK, unmodified, in Node: its calls, messages and sessions (ruling W4)."""

from __future__ import annotations

import json

import pytest

from emulator.realtime import closes
from support.browser import ScriptOutput, run_script
from support.service import Client, LiveServer, RunningService

FORBIDDEN = "role is not authorized"
MESSAGES = {"listen", "unlisten", "send"}
"""Methods that the test of messages covers."""
PLATFORM_ONLY = {
    "onContextUpdate", "onHighlightChanged", "onVisibilityChanged", "onPositionChanged", "beginPurchase", "getPrices",
    "onReloadEntitlements",
}  # fmt: skip
"""Methods that only call the platform's helper."""
WITHOUT_REQUEST = {"constructor", "setup", "updateUser", "onUserUpdate", "beginDebugHelixTokenFlow"}
OTHER_SERVICES = {"sendAnalyticsEvent"}
"""Methods that call a service that is not emulated."""


COMING_BACK = [
    closes.stopped(),
    closes.unread(limit=1),
    closes.late(seconds=1),
    closes.replaced(),
    closes.talkative(),
    closes.late_message(seconds=1),
]
"""Closes after which a client should connect again, now or later."""


def reasons(script: ScriptOutput) -> dict[str, str]:
    """Return the `reason` of calls that rejected, by name."""
    return {name: error.get("reason", error) for name, error in script["rejected"].items()}


def test_each_call_of_the_sdk_resolves_with_the_fields_that_callers_read(live: LiveServer):
    script = run_script("calls.js", live.url)
    resolved, reason = script["resolved"], reasons(script)
    # The tests call every method that sends a request
    other = MESSAGES | PLATFORM_ONLY | WITHOUT_REQUEST | OTHER_SERVICES

    assert set(script["methods"]) == set(script["called"]) | other

    # Only the expected calls reject
    assert {
        "fractionalVote", "clearingAsViewer", "logAsViewer", "clearingByAlias", "bufferWithoutStart",
        "channelStateSetByViewer", "secretStateAsViewer", "badPatch", "noJsonStore", "wrongPin", "pinOfViewer",
        "codesPutByViewer", "broadcastByGet", "unknownEndpoint", "userIdsAsViewer", "questionAddedByViewer",
        "voteOnInactive", "resultsWithoutWinner",
    } == set(reason)  # fmt: skip

    # A session loads with its user and the services time
    assert {"role": "viewer", "id": "5551", "opaque": "U5551"} == resolved["user"]
    assert resolved["clockOffset"] < 5_000
    assert ("viewer", "777", "5551", "U5551", "sdk-extension") == tuple(
        resolved["userInfo"][name] for name in ("role", "channel_id", "user_id", "opaque_user_id", "extension_id")
    )

    # A vote resolves with flat fields
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

    # A poll without an id is the default poll
    assert 2 == resolved["defaultVote"]["vote"]
    assert (1, 2) == (resolved["defaultPoll"]["count"], resolved["defaultPoll"]["vote"])

    # A refused vote rejects with a reason
    assert ("Invalid body", FORBIDDEN, FORBIDDEN) == (
        reason["fractionalVote"],
        reason["clearingAsViewer"],
        reason["logAsViewer"],
    )

    # A second answer resolves with the first
    assert {"accepted": True} == resolved["firstAnswer"]
    assert {"accepted": True, "original": "blue"} == resolved["secondAnswer"]
    assert {"data": [{"key": "red", "score": 1}]} == resolved["ranking"] == resolved["rankingByAlias"]
    assert {} == resolved["clearing"]
    assert {"data": []} == resolved["clearedRanking"]

    # Clear ranking of the SDK recurses endlessly
    assert "RangeError" == script["rejected"]["clearingByAlias"]["name"]

    # A buffer entry has the fields that clients read
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

    # A buffer without a start rejects because the SDK sends undefined
    assert "Malformed start parameter" == reason["bufferWithoutStart"]

    # Each store is set and read
    written = ("channelStateSet", "extensionStateSet", "viewerStateSet", "extensionViewerStateSet", "secretStateSet")
    assert [{}] * 5 == [resolved[name] for name in written]
    assert {"round": 4} == resolved["channelState"]
    assert {"season": 3} == resolved["extensionState"]
    assert {"team": "red"} == resolved["viewerState"]
    assert {"xp": 120} == resolved["extensionViewerState"]
    assert {} == resolved["viewerStateOfAnother"]
    assert {"key": 1} == resolved["secretState"]
    assert (FORBIDDEN, FORBIDDEN) == (reason["channelStateSetByViewer"], reason["secretStateAsViewer"])

    # All state stores are read at once
    assert {
        "extension": {"season": 3},
        "channel": {"round": 4},
        "viewer": {"team": "red"},
        "extension_viewer": {"xp": 120},
    } == resolved["allState"]

    # An admin patches and reads the stores of many viewers
    assert {} == resolved["manyPatched"]
    assert {"5551": {"xp": 120, "hello": "world"}, "12422": {"foo": "bar"}} == resolved["manyViewers"]

    # The inner client patches stores
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

    # Config stores are set patched and read
    written = ("channelConfigSet", "extensionConfigSet", "channelConfigsPatched", "extensionConfigPatched")
    channel, extension = {"theme": "dark"}, {"release": "2026-11-21"}

    assert [{}] * 4 == [resolved[name] for name in written]
    assert (channel, extension) == (resolved["channelConfig"], resolved["extensionConfig"])
    assert {"channel": channel, "extension": extension} == resolved["config"]
    assert {"channel": channel | {"foo": "bar"}, "extension": extension | {"a": 1}} == resolved["patchedConfig"]

    # A JSON store is read and an unwritten one rejects
    assert {"fires": 2} == resolved["jsonStore"]
    assert {"fires": 0} == resolved["defaultJsonStore"]
    assert "Not Found" == reason["noJsonStore"]

    # A validated PIN makes its token valid until revoked
    assert ({"exists": False}, 401) == (resolved["noPinToken"], resolved["statusBeforePin"])
    assert ({}, {"exists": True}, 200) == (resolved["validated"], resolved["pinToken"], resolved["statusAfterPin"])
    assert ({}, {"exists": False}, 401) == (
        resolved["revoked"],
        resolved["revokedPinToken"],
        resolved["statusAfterRevocation"],
    )

    # Validating a PIN rejects for a wrong PIN and for a viewer
    assert ("Invalid PIN", FORBIDDEN) == (reason["wrongPin"], reason["pinOfViewer"])

    # A PIN for a game has both names
    for call in ["gamePin", "gamePinWithStringBody"]:
        assert 6 == len(resolved[call]["token"])
        assert resolved[call]["pin"] == resolved[call]["token"]

    # A reward code is redeemed once
    assert ({}, FORBIDDEN) == (resolved["codesPut"], reason["codesPutByViewer"])
    assert [[0, 0], [1, 0], [0, 0]] == [
        resolved[name]["eligible"] for name in ("notYetEligible", "eligible", "eligibleAfterwards")
    ]
    assert {"code": "HAT-1", "all_prizes": ["HAT-1"]} == resolved["redeemed"]
    assert {"all_prizes": ["HAT-1"]} == resolved["redeemedTooOften"]
    assert {"redeemed": [["HAT-1"], []]} == resolved["held"]

    # A get broadcast needs a query because the SDK drops its body
    assert "Invalid body" == reason["broadcastByGet"]
    assert ({}, {}) == (resolved["broadcastByGetWithQuery"], resolved["broadcastByPost"])

    # The datastream accepts an event
    assert {} == resolved["datastream"]

    # An unknown endpoint rejects
    assert "Not Found" == reason["unknownEndpoint"]

    # Shared ids are listed
    assert {"next": "0", "results": [{"twitch_id": each} for each in ("5551", "777", "9001")]} == resolved["userIds"]
    assert FORBIDDEN == reason["userIdsAsViewer"]

    # A purchase of the development mode is posted
    assert [] == resolved["noProducts"]
    assert [{"sku": "SKU1", "displayName": "A hat", "cost": {"amount": 5, "type": "bits"}}] == resolved["products"]
    assert {"product": "SKU1", "answer": {}} == resolved["purchase"]

    # A viewer joins the team of the channel
    assert {"id": ""} == resolved["noTeam"]
    assert {"id": "777"} == resolved["teamJoined"] == resolved["team"]

    # An admin edits trivia questions
    described = {"id": "q1", "name": "Q1", "short_name": "q1", "description": "What is q1?"}

    assert described == {name: resolved["questionAdded"][name] for name in described}
    assert [["o1"], ["o1", "o2"], ["o1", "o2", "o3"], ["o1", "o2"]] == [
        [option["id"] for option in resolved[name]["options"]]
        for name in ("optionAdded", "secondOptionAdded", "thirdOptionAdded", "optionRemoved")
    ]
    assert FORBIDDEN == reason["questionAddedByViewer"]
    assert ({}, {"questions": []}) == (resolved["questionRemoved"], resolved["questionsAfterwards"])

    # The state of a trivia question decides which calls resolve
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

    # The trivia leaderboard has the fields that callers read
    (team,) = resolved["leaderboard"]["leaderboard"]
    score = team["questions"]["q1"]

    assert ("777", {"q1"}) == (team["team_id"], set(team["questions"]))
    assert ("q1", True, 2, 1) == (
        score["question_id"],
        score["broadcaster_correct"],
        score["team_votes"],
        score["percent_correct"],
    )


@pytest.mark.long
def test_all_calls_have_the_same_outcome_in_a_forked_namespace(live: LiveServer):
    script = run_script("calls.js", live.url)
    control = Client(base_url=live.url)
    control.post("/_ns/sdk-base").raise_for_status()
    base = RunningService(f"{live.url}/_ns/sdk-base")
    base.client("viewer", user="1", channel="777").post("vote?id=before", json={"value": 1}).raise_for_status()
    control.post("/_ns/sdk-fork?from=sdk-base").raise_for_status()
    fork = RunningService(f"{live.url}/_ns/sdk-fork")
    forked = run_script("calls.js", fork.url)

    assert set(script["resolved"]) == set(forked["resolved"])
    assert reasons(script) == reasons(forked)
    assert 1 == fork.client("viewer", user="2", channel="777").get("vote?id=before").json()["count"]


def test_pages_of_the_sdk_receive_broadcasts_through_the_pusher_endpoint(live: LiveServer):
    received = run_script("messages.js", live.url)
    # Every page of the channel receives a broadcast
    messages = [[{"motd": "hi"}, "motd"], [{"motd": "from a viewer", "text": "Zażółć 🦊"}, "motd"]]

    assert [messages, messages, messages] == received["broadcast"]

    # A message without data arrives without data
    assert [[None, "start"]] == received["withoutData"]

    # A whisper reaches its user under both spellings of the id
    for listener in ["prefixed", "bare"]:
        assert [[{"to": to}, "secret"] for to in ("U5551", "5551", "myself")] == received["whisper"][listener]

    # A whisper reaches no other user and no broadcast listener
    assert ([], []) == (received["whisper"]["other"], received["whisper"]["toAll"])

    # Every channel receives an extension broadcast
    here, elsewhere = received["everywhere"]

    assert [[{"to": to}, "news"] for to in ("all", "a channel", "all, again")] == here
    assert [[{"to": to}, "news"] for to in ("all", "all, again")] == elsewhere

    # A compressible message over 4 kilobytes arrives
    assert {"length": 21_000, "same": True, "event": "large"} == received["large"]

    # A message that is too large even compressed rejects
    assert "Message too large" == received["tooLarge"]["reason"]

    # A pattern receives all matching events with their names
    assert ["vote_update:round-7", "vote_update:round-8"] == received["pattern"]["pattern"]
    assert ["vote_update:round-7"] == received["pattern"]["exact"]

    # The SDK drops a duplicate on any channel
    assert [[{"n": 1}, "twice"], [{"n": 2}, "twice"]] == received["duplicates"]

    # Messages arrive in order
    assert list(range(20)) == received["inOrder"]

    # A removed listener receives nothing more
    assert [[{"n": 1}, "left"]] == received["left"]

    # A broadcast over rest arrives under the developers name
    assert [[{"by": "POST"}, "rest"], [{"by": "GET"}, "rest"]] == received["overRest"]

    # Messages of other environments extensions and channels do not arrive
    assert {"page": [], "otherExtension": [[{"n": 2}, "foreign"]]} == received["foreign"]


def test_sessions_of_the_sdk_have_the_identity_and_lifetime_of_their_tokens(live: LiveServer):
    results = run_script("sessions.js", live.url)  # moves the clock of the service
    # Sessions of several roles coexist
    for role, user in [("viewer", "5551"), ("broadcaster", "777"), ("admin", "5551"), ("backend", "5551")]:
        assert {"sdk": role, "before": role, "now": role, "userID": user} == results["roles"][role]

    # Instances of two apps share a token but no data
    assert {"same": True, "votes": [1, 2], "clients": ["sdk-extension", "other_app"]} == results["instances"]

    # The app of the first instance is the extension
    assert {"claimed": "my_app", "later": "my_app"} == results["firstInstance"]

    # The url may end in a slash
    assert 1 == results["slashed"]

    # The url may name a namespace
    assert 0 == results["namespaced"]

    # A session with its own token acts as the tokens user
    assert {"id": "42", "info": "42"} == results["ownToken"]

    # A session that cannot be authorized does not load
    misleading = "Your authentication token has expired."

    assert (misleading, misleading) == (results["unreachable"], results["brokenToken"])

    # A token that is not refreshed expires after 30 minutes
    assert "User was unauthorized to access this resource" == results["expired"]["reason"]

    # A refresh without an extension id keeps the session valid
    assert {"timers": 1, "vote": 1, "user": "5551", "first": 401, "second": 200} == results["renewed"]

    # A page receives broadcasts after a refresh
    assert {"n": 1} == results["receivedAfterwards"]

    # The SDK follows the services clock
    assert 31 == results["minutesAhead"]


@pytest.mark.long
def test_pusher_js_comes_back_after_each_close_that_means_so(live: LiveServer):
    bodies = ["{}", *(json.dumps({"code": code}) for code in sorted({each.close_code for each in COMING_BACK}))]

    assert dict.fromkeys(bodies, True) == run_script("reconnects.js", live.url, *bodies)
