"""`extcli clock`, `reset` and `wait`."""

from __future__ import annotations

import re
import time

import pytest

from support.program import http_response

WEEK = 7 * 86_400_000


def test_plain_output_of_now_is_the_time_in_ms(extcli, live):
    now = live.freeze()

    assert f"{now}\n" == extcli("clock", "now").stdout


def test_moving_the_clock_prints_what_expired(extcli, live):
    now = live.freeze()
    extcli("vote", "cast", "lunch", "--value", "1")

    result = extcli("clock", "advance", "8d")

    assert ["poll", "lunch", str(now + WEEK)] in result.rows
    assert "" == extcli("vote", "get", "lunch").stdout


@pytest.mark.parametrize("form", ["table", "plain"])
def test_an_expired_pin_has_a_short_id(extcli, form):
    """The service's id of a PIN is a digest of 64 digits."""
    extcli("pin", "request")

    stdout = extcli("clock", "advance", "6m", "-o", form).stdout

    assert re.search(r"\bpin\s+[0-9a-f]{12}…\s", stdout)


@pytest.mark.parametrize(
    ("text", "ms"), [("500ms", 500), ("5m", 300_000), ("1h30m", 5_400_000), ("8d", 691_200_000), ("0.5s", 500)]
)
def test_the_clock_advances_by_a_duration(extcli, live, text, ms):
    now = live.freeze()

    result = extcli("clock", "advance", text, "-o", "json")

    assert now + ms == result.json["now"]


def test_the_clock_can_be_frozen_and_released(extcli):
    assert extcli("clock", "freeze", "-o", "json").json["frozen"]
    assert not extcli("clock", "freeze", "--off", "-o", "json").json["frozen"]


def test_a_table_shows_the_offset_of_the_clock(extcli, live):
    live.freeze()
    live.advance(WEEK + 86_400_000)

    stdout = extcli("clock", "now", "-o", "table").stdout

    assert "8d ahead" in stdout
    assert "frozen  yes" in stdout


def test_a_locally_signed_token_follows_a_moved_clock(extcli, live):
    """The service compares `exp` with its own clock, so the token is signed again by that clock."""
    live.advance(WEEK)

    result = extcli("vote", "cast", "--value", "3", env={"EXTCLI_SECRET": "c2VjcmV0"})

    assert (0, "3\t1\n") == (result.exit_code, result.stdout)


def test_production_has_no_clock_to_control(extcli, production):
    result = extcli("clock", "advance", "1d", "--url", production.url, fails=4)

    assert "only an emulator in sandbox has this path" in result.stderr


def test_a_refused_control_call_does_not_suggest_another_role(extcli, answering):
    """It carries no credentials."""
    url = answering(http_response("403 Forbidden", '{"reason":"Forbidden"}'))

    result = extcli("clock", "advance", "1d", "--url", url, fails=4)

    assert "--as" not in result.stderr


def test_reset_deletes_all_data(extcli, live):
    extcli("vote", "cast", "--value", "3")
    live.advance(1000)

    assert (0, "") == (extcli("reset").exit_code, extcli("reset").stdout)
    assert "" == extcli("vote", "get").stdout
    assert abs(extcli("clock", "now", "-o", "json").json["offset"]) < 1000


def test_the_help_of_wait_leaves_out_the_option_without_effect(extcli):
    assert "--ready" not in extcli("wait", "--help").stdout


def test_a_deployment_without_a_readiness_path_is_ready_when_it_responds(extcli, answering):
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
def test_another_web_server_is_never_ready(extcli, answering, answers):
    result = extcli("wait", "--ready", "--url", answering(*answers), "--timeout", "90ms", fails=7)

    assert "check that --url (EXTCLI_URL) is an extension service" in result.stderr


@pytest.mark.long
def test_wait_ends_at_the_timeout_even_if_an_attempt_hangs(extcli, answering):
    """After about three seconds an attempt hangs; its timeout is the remaining second, not another four."""
    url = answering(*[http_response("503 Service Unavailable")] * 30, hold=True)
    started = time.monotonic()

    extcli("wait", "--ready", "--url", url, "--timeout", "4s", exits=7)

    assert time.monotonic() - started < 6.5


def test_wait_exits_7_if_the_service_is_not_ready(extcli, answering):
    url = answering(*[http_response("503 Service Unavailable", '{"status":"starting"}')] * 20)

    extcli("wait", "--ready", "--url", url, "--timeout", "1ms", fails=7)


def test_wait_says_once_what_it_waits_for_and_how_long(extcli, answering):
    url = answering(*[http_response("503 Service Unavailable", '{"status":"starting"}')] * 20)

    lines = extcli("wait", "--url", url, "--timeout", "350ms").stderr.splitlines()

    assert [f"waiting up to 0.35 s for {url} to be ready"] == [line for line in lines if line.startswith("waiting")]


def test_wait_is_silent_if_asked_to_be_quiet(extcli):
    result = extcli("wait", "--quiet", "--url", "http://127.0.0.1:1", "--timeout", "150ms")

    assert (3, False) == (result.exit_code, "waiting" in result.stderr)


# `extcli ns`


@pytest.fixture
def blue(extcli, live):
    """The URL of the namespace `blue`, which holds a vote."""
    url = f"{live.url}/_ns/blue"
    extcli("vote", "cast", "--value", "3", "--url", url)
    yield url
    extcli("ns", "rm", "blue")


def test_namespaces_in_use_are_listed(extcli, blue):
    assert ["blue"] in extcli("ns", "list").rows
    assert "blue" in extcli("ns", "list", "-o", "json").json["namespaces"]
    assert "blue" in extcli("ns", "list", "-o", "jsonl").jsonl


def test_the_url_may_name_a_namespace(extcli, blue):
    assert ["blue"] in extcli("ns", "list", "--url", blue).rows
    assert 0 == extcli("ns", "rm", "blue", "--url", blue).exit_code
    assert ["blue"] not in extcli("ns", "list").rows


def test_a_production_service_has_no_namespaces(extcli, production):
    for command in (("list",), ("rm", "blue")):
        assert 4 == extcli("ns", *command, env={"EXTCLI_URL": production.url}).exit_code


def test_a_new_namespace_is_printed_as_a_url(extcli, live):
    created = extcli("ns", "new", "green")

    assert f"{live.url}/_ns/green\n" == created.stdout
    assert {"namespace": "green", "url": f"{live.url}/_ns/green"} == extcli("ns", "new", "green", "-o", "json").json
    extcli("ns", "rm", "green")


def test_a_new_namespace_without_a_name_gets_a_free_one(extcli, live):
    url = extcli("ns", "new").stdout.strip()

    name = url.removeprefix(f"{live.url}/_ns/")
    assert [name] in extcli("ns", "list").rows
    extcli("ns", "rm", name)


def test_a_fork_has_the_votes_of_its_source(extcli, live, blue):
    fork = extcli("ns", "fork", "blue", "fork-of-blue").stdout.strip()

    assert extcli("vote", "get", "--url", blue).stdout == extcli("vote", "get", "--url", fork).stdout != ""
    extcli("ns", "rm", "fork-of-blue")


def test_a_fork_into_a_namespace_with_data_is_refused(extcli, blue):
    refused = extcli("ns", "fork", "default", "blue", exits=4)

    assert "extcli ns rm blue" in refused.stderr


def test_the_list_shows_records_sockets_age_and_last_use(extcli, blue):
    details = extcli("ns", "list", "-o", "json").json["details"]

    [found] = [each for each in details if each["name"] == "blue"]
    assert {"name", "records", "age", "idle", "sockets"} == set(found)
    table = extcli("ns", "list", "-o", "table").stdout
    assert all(word in table for word in ("blue", "records", "last use"))


def test_a_namespace_that_was_not_in_use_is_not_called_deleted(extcli):
    extcli("ns", "new", "green")

    notes = [extcli("ns", "rm", "green", "-o", "table").stderr for _ in range(2)]

    assert ["namespace green is deleted\n", "namespace green was not in use\n"] == notes
