"""`extcli wait CONDITION` and `extcli expect CONDITION`."""

from __future__ import annotations

import json
import re

import pytest

from support.process import wait_until
from support.program import http_response
from support.service import CLIENT_ID, RunningService
from support.socket_client import linked_game
from support.waits import held


@pytest.fixture
def channel(live):
    """The owner of the default channel of extcli."""
    return live.client("broadcaster", user="1001", channel="1001")


def test_a_condition_that_is_met_prints_nothing(extcli):
    extcli("vote", "cast", "lunch", "--value", "3")

    for verb in ("wait", "expect"):
        result = extcli(verb, "poll", "lunch", "--count", "=1", "--value", "3=1", "--sum", "3")
        assert (0, "", "") == (result.exit_code, result.stdout, result.stderr)


def test_a_condition_that_is_not_met_says_what_was_wanted_and_found(extcli, live):
    live.set(1_900_000_000_000)
    extcli("vote", "cast", "lunch", "--value", "3")
    extcli("vote", "cast", "lunch", "--value", "2", "--as", "viewer:U2")

    result = extcli("wait", "poll", "lunch", "--count", "3", "--value", "0=2", "--timeout", "20ms", fails=7)

    assert [
        "extcli: not met within 0.02 s: poll lunch in channel 1001",
        "  wanted: count: at least 3, value 0: at least 2",
        "  found:  count: 2, value 0: 0",
        "  last changes:",
        "    2030-03-17 17:46:40Z  lunch: vote 3 by U1 in channel 1001",
        "    2030-03-17 17:46:40Z  lunch: vote 2 by U2 in channel 1001",
    ] == result.stderr.splitlines()


def test_the_message_has_at_most_80_columns_and_no_control_characters(extcli, channel):
    channel.post("rank?id=colour", json={"key": f"\x1b[31m{'red' * 40}"})
    channel.post("channel_state", json={"text": "é" * 500})

    stderr = extcli("expect", "rank", "colour", "--key", "x" * 90).stderr
    stderr += extcli("expect", "state", "channel", "--path", "/text", "--equals", "no").stderr

    assert "\x1b" not in stderr
    assert 80 == max(map(len, stderr.splitlines()))


def test_json_prints_the_response_of_the_service_and_an_error_with_the_same_facts(extcli):
    extcli("vote", "cast", "--value", "3")

    result = extcli("expect", "poll", "--count", "2", "-o", "json")

    error = json.loads(result.stderr)["error"]
    assert (7, False, 7) == (result.exit_code, result.json["met"], error["exit_code"])
    for name in ("wanted", "found", "changes"):
        assert result.json[name] == error[name]
    assert [3] == [each["value"] for each in error["changes"]]


def test_expect_does_not_wait(extcli, live):
    result = extcli("expect", "poll", "--timeout", "20s", "-v")

    assert (7, True) == (result.exit_code, "timeout=0" in result.stderr)


def test_wait_returns_as_soon_as_the_condition_is_met(extcli, shell, live):
    process = shell("wait", "sockets", "state:channel", "--client-id", CLIENT_ID)
    wait_until(lambda: held(live) == 1)

    with linked_game(live, "1001") as game:
        game.data("subscribe", "state", {"topic_id": "channel"})
        assert 0 == process.wait(20)
    process.communicate()


def test_wait_works_for_longer_than_one_call_may_take(extcli, answering):
    outcome = {"met": False, "wanted": {"count": "at least 1"}, "found": {"count": 0}, "changes": [], "mark": 1}
    answers = [http_response("200 OK", json.dumps(outcome | {"met": met})) for met in (False, False, True)]

    result = extcli("wait", "poll", "--timeout", "5m", "-v", "--url", answering(*answers), exits=0)

    assert ["1000", "50000", "50000"] == re.findall(r"timeout=(\d+)", result.stderr)


@pytest.mark.parametrize(
    ("args", "what"), [(("poll",), "poll default in channel 1001"), (("journal", "POST"), "journal POST")]
)
def test_wait_says_once_what_it_waits_for_and_how_long(extcli, answering, args, what):
    unmet = {"met": False, "wanted": {}, "found": {}, "changes": [], "mark": 1}
    answers = [http_response("200 OK", json.dumps(unmet | {"met": met})) for met in (False, False, True)]

    result = extcli("wait", *args, "--timeout", "5m", "--url", answering(*answers))

    assert (0, f"waiting up to 300 s for {what}\n") == (result.exit_code, result.stderr)


def test_with_json_output_standard_error_has_only_an_error(extcli, answering):
    outcome = {"met": False, "wanted": {}, "found": {}, "changes": [], "mark": 1}
    answers = [http_response("200 OK", json.dumps(outcome | {"met": met})) for met in (False, True)]

    assert "" == extcli("wait", "poll", "-o", "json", "--url", answering(*answers)).stderr


def test_wait_ends_when_the_service_is_ready(extcli):
    ready = extcli("wait")
    away = extcli("wait", "--url", "http://127.0.0.1:1", "--timeout", "1ms", fails=3)

    assert (0, "", "") == (ready.exit_code, ready.stdout, ready.stderr)
    assert "cannot connect to" in away.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("rank", "colour", "--key", "blue", "--score", "1"),
        ("accumulate", "stars", "--latest", '{"stars": 5}', "--count", "=1"),
        ("state", "channel", "--path", "/round", "--equals", "4"),
        ("state", "channel", "--path", "/team", "--equals", "red"),
        ("state", "channel", "--path", "/team", "--equals", '"red"'),
        ("state", "viewer", "--equals", '{"xp": 1}'),
        ("state", "viewer", "--user", "1", "--path", "/xp"),
        ("store-config", "extension", "--path", "/theme/dark", "--equals", "true"),
        ("json-store", "level", "--path", "/level", "--equals", "7"),
        ("pin", "issued"),
        ("pin", "used"),
        ("pin", "revoked", "--count", "=0"),
        ("broadcast", "goal", "--count", "=1"),
        ("sockets", "--count", "=1"),
        ("sockets", "authentication", "--count", "=0"),
        ("poll", "x", "--value", "-1=1", "--sum", "-1"),
    ],
    ids=" ".join,
)
def test_each_kind_of_condition_is_met(extcli, live, channel, args):
    viewer = live.client("viewer", user="U1", channel="1001")
    viewer.post("vote?id=x", json={"value": -1})
    viewer.post("rank?id=colour", json={"key": "blue"})
    viewer.post("accumulate?id=stars", json={"stars": 5})
    viewer.post("viewer_state", json={"xp": 1})
    channel.post("channel_state", json={"round": 4, "team": "red"})
    channel.post("json_store?id=level", json={"level": 7})
    channel.post("broadcast", json={"event": "goal", "data": 1})
    live.client("backend").post("extension_config", json={"theme": {"dark": True}})

    with linked_game(live, "1001"):
        result = extcli("expect", *args)

    assert (0, "") == (result.exit_code, result.stderr)


def test_since_a_mark_only_later_changes_count(extcli):
    extcli("vote", "cast", "lunch", "--value", "3")
    mark = extcli("wait", "mark").stdout.strip()

    before = extcli("expect", "poll", "lunch", "--count", "1", "--since", mark).exit_code
    extcli("vote", "cast", "lunch", "--value", "3")

    assert (7, 0) == (before, extcli("expect", "poll", "lunch", "--count", "1", "--since", mark).exit_code)


@pytest.mark.parametrize("verb", ["wait", "expect"])
def test_a_service_without_a_control_api_is_a_usage_error_that_names_listen(extcli, production, verb):
    result = extcli(verb, "poll", "--url", production.url, exits=2)

    assert "has no control API" in result.stderr
    assert "`extcli listen EVENT --count N --timeout 5s`" in result.stderr


def test_a_production_service_has_no_mark(extcli, production):
    extcli("wait", "mark", "--url", production.url, fails=2)


def test_a_wait_ends_with_its_namespace(extcli, shell, live):
    blue = RunningService(f"{live.url}/_ns/blue")
    process = shell("wait", "poll", "--url", blue.url)
    wait_until(lambda: held(blue) == 1)

    extcli("ns", "rm", "blue")

    assert 5 == process.wait(20)
    assert b"the namespace was dropped" in process.communicate()[1]


def test_several_waits_are_met_by_one_change(shell, live, channel):
    processes = [shell("wait", "broadcast", "goal", "--timeout", "20s") for _ in range(3)]
    wait_until(lambda: held(live) == 3)

    channel.post("broadcast", json={"event": "goal", "data": 1})

    assert [0, 0, 0] == [each.wait(20) for each in processes]
    for each in processes:
        each.communicate()


def test_expect_journal_counts_what_was_requested(extcli, live):
    extcli("vote", "cast", "lunch", "--value", "3", "--channel", "777")
    extcli("vote", "logs", "lunch", "--as", "viewer")

    for options in (
        ["POST /v1/e/vote", "--status", "200", "--count", "=1"],
        ["/v1/e/vote_logs", "--status", "4xx", "--role", "viewer"],
        ["POST /v1/e/vote", "--channel", "777"],
        ["POST /v1/e/vote", "--channel", "1", "--count", "=0"],
        ["--status", "5xx", "--count", "=0"],
    ):
        assert (0, "") == (extcli("expect", "journal", *options).exit_code, extcli("expect", "journal").stderr)


def test_expect_journal_says_what_was_requested_instead(extcli, live):
    live.set(1_900_000_000_000)
    extcli("vote", "logs", "lunch", "--as", "viewer:U1")

    result = extcli("expect", "journal", "GET /v1/e/vote_logs", "--status", "200", exits=7)

    assert [
        "extcli: not met: journal GET /v1/e/vote_logs",
        "  wanted: count: at least 1",
        "  found:  count: 0",
        "  last changes:",
        "    2030-03-17 17:46:40Z  GET /v1/e/vote_logs: answered 403 by U1 in channel 10…",
    ] == result.stderr.splitlines()


def test_wait_journal_ends_at_the_entry(shell, live, channel):
    process = shell("wait", "journal", "POST /v1/e/vote", "--count", "2", "--timeout", "20s")
    wait_until(lambda: held(live) == 1)

    for _ in range(2):
        channel.post("vote", json={"value": 1})

    assert 0 == process.wait(20)
    process.communicate()


def test_wait_journal_counts_only_entries_after_a_number(extcli, live, channel):
    channel.get("vote")
    mark = extcli("logs", "-o", "json").json["mark"]
    channel.get("vote")

    assert 0 == extcli("expect", "journal", "GET /v1/e/vote", "--since", str(mark), "--count", "=1").exit_code
    assert "is after the latest entry" in extcli("expect", "journal", "--since", "999999999").stderr


@pytest.mark.parametrize(
    ("condition", "write", "own"),
    [
        ("poll lunch --count 9", "vote cast {id} 3", "lunch: vote 3"),
        ("rank colour --key blue --count 9", "rank submit {id} --key red", "colour: "),
        ("accumulate ratings --count 9", "accumulate add {id} 1", "ratings: "),
        ("json-store level --path /a --equals 9", "json-store set {id} a=1", "level: "),
        ("broadcast goal --count 9", "broadcast send {id} 1", "goal: "),
    ],
)
def test_the_last_changes_are_of_what_was_expected(extcli, condition, write, own):
    for name in ("other", condition.split()[1], "another"):
        extcli(*write.format(id=name).split(), exits=0)

    told = extcli("expect", *condition.split(), fails=7).stderr

    assert "  last changes:\n" in told
    assert (1, 0) == (told.count(own), told.count("other: "))


@pytest.mark.parametrize(
    ("condition", "write"), [("poll lunch", "vote cast Lunch 3"), ("rank a", "rank submit b --key c")]
)
def test_changes_of_others_are_called_so_and_show_a_misspelling(extcli, condition, write):
    extcli(*write.split(), exits=0)

    told = extcli("expect", *condition.split(), fails=7).stderr

    assert "  last changes of this kind:\n" in told
    assert f"{write.split()[2]}: " in told
