"""`extcli wait` and `extcli expect`: how a condition is asked for, and what is said of it. `features/test_waits.py` has
what each of them means.
"""

from __future__ import annotations

import json
import re
import shlex

import pytest

from support.process import wait_until
from support.program import http_response
from support.service import CHANNEL, CLIENT_ID, real_seconds
from support.socket_client import linked_game
from support.waits import held


@pytest.fixture
def channel(live):
    """The owner of the default channel of extcli."""
    return live.client("broadcaster", user="1001", channel="1001")


def test_a_condition_that_is_not_met_says_what_was_wanted_and_found(extcli, live):
    live.set(1_900_000_000_000)
    extcli("vote", "cast", "lunch", "--value", "3")
    condition = ("poll", "lunch", "--count", "3", "--value", "0=2", "--timeout", "20ms")

    said = extcli("wait", *condition, fails=7).stderr
    for named in ("0.02 s", "poll lunch in channel 1001", "count: at least 3", "value 0: at least 2", "count: 1"):
        assert named in said
    assert "last changes:\n    2030-03-17 17:46:40Z  lunch: vote 3 by U1 in channel 1001\n" in said
    misspelt = extcli("expect", "poll", "Lunch", fails=7).stderr
    assert "last changes of this kind:\n" in misspelt
    assert "lunch: vote 3" in misspelt

    result = extcli("expect", *condition, "-o", "json", exits=7)
    error = json.loads(result.stderr)["error"]
    assert (7, False) == (error["exit_code"], result.json["met"])
    assert [result.json[name] for name in ("wanted", "found", "changes")] == [
        error[name] for name in ("wanted", "found", "changes")
    ]


def test_the_message_has_no_control_characters_and_expect_does_not_wait(extcli, channel):
    channel.post("rank?id=colour", json={"key": f"\x1b[31m{'red' * 40}"})

    said = extcli("expect", "rank", "colour", "--key", "x" * 90, "--timeout", "20s", "-v", exits=7).stderr

    assert ("\x1b" in said, "x" * 90 in said, "timeout=0" in said) == (False, True, True)


def test_wait_returns_as_soon_as_the_condition_is_met(extcli, shell, live):
    process = shell("wait", "sockets", "state:channel", "--client-id", CLIENT_ID)
    wait_until(lambda: held(live) == 1)

    with linked_game(live, "1001") as game:
        game.data("subscribe", "state", {"topic_id": "channel"})
        assert 0 == process.wait(20)
    process.communicate()


@pytest.mark.parametrize("form", ["table", "json"])
def test_wait_works_for_longer_than_one_call_may_take_and_says_once_what_for(extcli, answering, form):
    outcome = {"met": False, "wanted": {"count": "at least 1"}, "found": {"count": 0}, "changes": [], "mark": 1}
    answers = [http_response("200 OK", json.dumps(outcome | {"met": met})) for met in (False, False, True)] * 2
    where = ("--url", answering(*answers))

    result = extcli("wait", "poll", "--timeout", "5m", "-o", form, *where, exits=0)

    said = "" if form == "json" else "waiting up to 300 s for poll default in channel 1001\n"
    assert said == result.stderr
    trace = extcli("wait", "poll", "--timeout", "5m", "-v", *where, exits=0).stderr
    assert ["1000", "50000", "50000"] == re.findall(r"timeout=(\d+)", trace)


def test_each_kind_of_condition_is_met(extcli, live, channel):
    viewer = live.client("viewer", user="U1", channel="1001")
    viewer.post("vote?id=x", json={"value": -1})
    viewer.post("rank?id=colour", json={"key": "blue"})
    viewer.post("accumulate?id=stars", json={"stars": 5})
    viewer.post("viewer_state", json={"xp": 1})
    mark = extcli("wait", "mark").stdout.strip()
    channel.post("channel_state", json={"round": 4, "team": "red"})
    channel.post("json_store?id=level", json={"level": 7})
    channel.post("broadcast", json={"event": "goal", "data": 1})

    with linked_game(live, "1001"):
        for line in (
            "poll x --value=-1=1 --sum=-1 --count =1",
            f"poll x --count =0 --since {mark}",
            "rank colour --key blue --score 1",
            """accumulate stars --latest '{"stars": 5}' --count =1""",
            "state channel --path /round --equals 4",
            "state channel --path /team --equals red",
            """state channel --path /team --equals '"red"'""",
            "state viewer --user 1 --path /xp",
            "json-store level --path /level --equals 7",
            "pin issued",
            "pin revoked --count =0",
            "broadcast goal --count =1",
            "sockets --count =1",
            "sockets authentication --count =0",
            "journal 'POST /v1/e/vote' --status 200 --count =1",
            "journal 'POST /v1/e/vote' --channel 1 --count =0",
            "journal --status 5xx --count =0",
        ):
            result = extcli("expect", *shlex.split(line))
            assert (0, "", "") == (result.exit_code, result.stdout, result.stderr), line


def test_a_request_that_got_another_response_is_among_the_last_changes(extcli, live):
    live.set(1_900_000_000_000)
    extcli("vote", "logs", "lunch", "--as", "viewer:U1")

    result = extcli("expect", "journal", "GET /v1/e/vote_logs", "--status", "200", exits=7)

    said = "2030-03-17 17:46:40Z  GET /v1/e/vote_logs: answered 403 by U1"
    assert said in result.stderr


def test_a_service_without_a_control_api_refuses_conditions(extcli, production):
    for verb in ("wait", "expect"):
        said = extcli(verb, "poll", "--url", production.url, exits=4).stderr
        assert "only a sandbox emulator has this path" in said


# `extcli expect parity`: no request that production would have responded differently


def test_differences_are_listed_with_their_requests_and_only_named_rules_count(extcli, live):
    extcli("expect", "parity", fails=0)
    for number, claims in enumerate(({}, {}, {"exp": real_seconds() + 60})):
        viewer = live.client("viewer", user="1", channel=CHANNEL, **claims)
        viewer.get("vote", headers={"X-Request-Id": f"vote-{number}"}).raise_for_status()

    result = extcli("expect", "parity", exits=7)

    assert ["exp", "refuse", "2", "vote-0", "vote-1"] in result.rows
    assert "vote-1 GET /v1/e/vote" in result.stderr
    extcli("expect", "parity", "stage,rate", exits=0)
    assert ["signature"] == [row[0] for row in extcli("expect", "parity", "unknown").rows]
    assert ["exp"] == [each["rule"] for each in extcli("expect", "parity", "exp", "-o", "json").json["rules"]]


# `extcli wait` without a condition: the service is ready


def test_wait_ends_when_the_service_is_ready(extcli):
    ready = extcli("wait")
    away = extcli("wait", "--url", "http://127.0.0.1:1", "--timeout", "1ms", fails=3)

    assert (0, "", "") == (ready.exit_code, ready.stdout, ready.stderr)
    assert "cannot connect to" in away.stderr


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([http_response("404 Not Found"), http_response("401 Unauthorized", '{"reason":"User was unauthorized"}')], 0),
        ([http_response("200 OK", "<html>", "text/html")] * 20, 7),
        ([http_response("200 OK", '{"status":"up"}')] * 20, 7),
        ([http_response("404 Not Found", "<html>", "text/html")] * 2, 7),
        ([http_response("404 Not Found"), http_response("200 OK", "<html>", "text/html")], 7),
        ([http_response("404 Not Found"), http_response("401 Unauthorized", "<html>", "text/html")], 7),
        ([http_response("503 Service Unavailable", '{"status":"starting"}')] * 20, 7),
    ],
    ids=["a deployment", "a page", "other JSON", "no pages", "one page for all", "a page with a password", "starting"],
)
def test_a_deployment_is_ready_when_it_responds_and_another_web_server_never(extcli, answering, answers, code):
    timeout = ("--timeout", "90ms") if code else ()

    extcli("wait", "--url", answering(*answers), *timeout, exits=code)
