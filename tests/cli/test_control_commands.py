"""`extcli clock`, `reset` and `wait`."""

from __future__ import annotations

import time

import pytest

from support.program import http_response

WEEK = 7 * 86_400_000


def test_the_time_alone_is_printed_for_scripts(extcli, live):
    now = live.freeze()

    assert f"{now}\n" == extcli("clock", "now").stdout


def test_a_move_prints_what_expired(extcli, live):
    now = live.freeze()
    extcli("vote", "cast", "lunch", "--value", "1")

    result = extcli("clock", "advance", "8d")

    assert ["poll", "lunch", str(now + WEEK)] in result.rows
    assert "" == extcli("vote", "get", "lunch").stdout


@pytest.mark.parametrize(
    ("text", "ms"), [("500ms", 500), ("5m", 300_000), ("1h30m", 5_400_000), ("8d", 691_200_000), ("0.5s", 500)]
)
def test_a_duration_is_written_like_this(extcli, live, text, ms):
    now = live.freeze()

    result = extcli("clock", "advance", text, "-o", "json")

    assert now + ms == result.json["now"]


@pytest.mark.parametrize("text", ["", "5", "m", "5 parsecs", "-5m", "5m!"])
def test_what_is_no_duration_is_wrong_usage(extcli, text):
    assert 2 == extcli("clock", "advance", "--", text).exit_code


@pytest.mark.parametrize("text", ["1900000000000", "2030-03-17T17:46:40Z", "2030-03-17T18:46:40+01:00"])
def test_the_clock_can_be_set(extcli, live, text):
    live.freeze()

    assert 1_900_000_000_000 == extcli("clock", "set", text, "-o", "json").json["now"]


def test_what_is_no_instant_is_wrong_usage(extcli):
    assert 2 == extcli("clock", "set", "tomorrow").exit_code


def test_the_clock_stands_still_and_goes_on(extcli):
    assert extcli("clock", "freeze", "-o", "json").json["frozen"]
    assert not extcli("clock", "freeze", "--off", "-o", "json").json["frozen"]


def test_people_see_the_time_and_its_distance(extcli, live):
    live.freeze()
    live.advance(WEEK + 86_400_000)

    stdout = extcli("clock", "now", "-o", "table").stdout

    assert "8d ahead" in stdout
    assert "frozen  yes" in stdout


def test_a_signed_token_follows_a_clock_that_was_moved(extcli, live):
    """The service compares `exp` with its own clock, so the token is signed again by it."""
    live.advance(WEEK)

    result = extcli("vote", "cast", "--value", "3", env={"EXTCLI_SECRET": "c2VjcmV0"})

    assert (0, "3\t1\n") == (result.exit_code, result.stdout)


def test_a_deployment_cannot_be_controlled_and_the_error_says_so(extcli, production):
    result = extcli("clock", "advance", "1d", "--url", production.url)

    assert (4, "") == (result.exit_code, result.stdout)
    assert "only an emulator in sandbox has this path" in result.stderr


def test_a_refused_control_call_is_not_advised_to_act_as_somebody_else(extcli, answering):
    """It carries no credentials, whoever makes it."""
    url = answering(http_response("403 Forbidden", '{"reason":"Forbidden"}'))

    result = extcli("clock", "advance", "1d", "--url", url)

    assert (4, "") == (result.exit_code, result.stdout)
    assert "--as" not in result.stderr


def test_reset_forgets_everything(extcli, live):
    extcli("vote", "cast", "--value", "3")
    live.advance(1000)

    assert (0, "") == (extcli("reset").exit_code, extcli("reset").stdout)
    assert "" == extcli("vote", "get").stdout
    assert abs(extcli("clock", "now", "-o", "json").json["offset"]) < 1000


def test_waiting_for_a_ready_service_is_short(extcli):
    assert (0, "") == (extcli("wait", "--ready").exit_code, extcli("wait", "--ready").stdout)


def test_a_deployment_without_a_readiness_path_is_ready_when_it_answers(extcli, answering):
    wants_credentials = http_response("401 Unauthorized", '{"reason":"User was unauthorized to access this resource"}')
    url = answering(http_response("404 Not Found"), wants_credentials)

    assert 0 == extcli("wait", "--ready", "--url", url).exit_code


@pytest.mark.parametrize(
    "answers",
    [
        [http_response("200 OK", "<html>", "text/html")],
        [http_response("200 OK", '{"status":"up"}')],
        [http_response("404 Not Found", "<html>", "text/html"), http_response("404 Not Found", "<html>", "text/html")],
        [http_response("404 Not Found"), http_response("200 OK", "<html>", "text/html")],
        [http_response("404 Not Found"), http_response("401 Unauthorized", "<html>", "text/html")],
    ],
    ids=["a page", "other JSON", "no pages", "a page for every path", "a page behind a password"],
)
def test_a_web_server_that_is_no_extension_service_is_never_ready(extcli, answering, answers):
    result = extcli("wait", "--ready", "--url", answering(*answers), "--timeout", "90ms")

    assert (7, "") == (result.exit_code, result.stdout)
    assert "check that --url (EXTCLI_URL) is an extension service" in result.stderr


def test_waiting_takes_no_longer_than_the_timeout_whatever_the_attempts_meet(extcli, answering):
    """After some three seconds an attempt hangs, and has only the one that the others left, not four of its own."""
    url = answering(*[http_response("503 Service Unavailable")] * 30, hold=True)
    started = time.monotonic()

    result = extcli("wait", "--ready", "--url", url, "--timeout", "4s")

    assert 7 == result.exit_code
    assert time.monotonic() - started < 6.5


def test_waiting_for_nobody_is_exit_3(extcli):
    result = extcli("wait", "--ready", "--url", "http://127.0.0.1:1", "--timeout", "1ms")

    assert (3, "") == (result.exit_code, result.stdout)
    assert "nobody answers" in result.stderr


def test_waiting_for_one_that_is_not_ready_is_exit_7(extcli, answering):
    url = answering(*[http_response("503 Service Unavailable", '{"status":"starting"}')] * 20)

    result = extcli("wait", "--ready", "--url", url, "--timeout", "1ms")

    assert (7, "") == (result.exit_code, result.stdout)


def test_waiting_for_nothing_is_wrong_usage(extcli):
    assert 2 == extcli("wait").exit_code
