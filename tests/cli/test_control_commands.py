"""`extcli clock`, `reset` and `wait`."""

from __future__ import annotations

import re
import time

import pytest

from support.program import http_response

WEEK = 7 * 86_400_000


def test_moving_the_clock_prints_what_expired(extcli, live):
    now = live.freeze()
    assert f"{now}\n" == extcli("clock", "now").stdout
    extcli("vote", "cast", "lunch", "--value", "1")

    assert ["poll", "lunch", str(now + WEEK)] in extcli("clock", "advance", "8d").rows
    assert extcli("clock", "freeze", "-o", "json").json["frozen"]
    assert not extcli("clock", "freeze", "--off", "-o", "json").json["frozen"]


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


def test_a_locally_signed_token_follows_a_moved_clock(extcli, live):
    """The service compares `exp` with its own clock, so the token is signed again by that clock."""
    live.advance(WEEK)

    result = extcli("vote", "cast", "--value", "3", env={"EXTCLI_SECRET": "c2VjcmV0"})

    assert (0, "3\t1\n") == (result.exit_code, result.stdout)


def test_reset_deletes_all_data(extcli, live):
    extcli("vote", "cast", "--value", "3")
    live.advance(1000)

    assert (0, "") == (extcli("reset").exit_code, extcli("reset").stdout)
    assert "" == extcli("vote", "get").stdout
    assert abs(extcli("clock", "now", "-o", "json").json["offset"]) < 1000


def test_a_deployment_without_a_readiness_path_is_ready_when_it_responds(extcli, answering):
    wants_credentials = http_response("401 Unauthorized", '{"reason":"User was unauthorized to access this resource"}')
    url = answering(http_response("404 Not Found"), wants_credentials)

    assert 0 == extcli("wait", "--url", url).exit_code


@pytest.mark.parametrize(
    "answers",
    [
        [http_response("200 OK", "<html>", "text/html")] * 20,
        [http_response("200 OK", '{"status":"up"}')] * 20,
        [http_response("404 Not Found", "<html>", "text/html")] * 2,
        [http_response("404 Not Found"), http_response("200 OK", "<html>", "text/html")],
        [http_response("404 Not Found"), http_response("401 Unauthorized", "<html>", "text/html")],
        [http_response("503 Service Unavailable", '{"status":"starting"}')] * 20,
    ],
    ids=["a page", "other JSON", "no pages", "a page for every path", "a page behind a password", "starting"],
)
def test_another_web_server_is_never_ready(extcli, answering, answers):
    extcli("wait", "--url", answering(*answers), "--timeout", "90ms", fails=7)


@pytest.mark.long
def test_wait_ends_at_the_timeout_even_if_an_attempt_hangs(extcli, answering):
    """After about three seconds an attempt hangs; its timeout is the remaining second, not another four."""
    url = answering(*[http_response("503 Service Unavailable")] * 30, hold=True)
    started = time.monotonic()

    extcli("wait", "--url", url, "--timeout", "4s", exits=7)

    assert time.monotonic() - started < 6.5


# `extcli ns`


@pytest.fixture
def blue(extcli, live):
    """The URL of the namespace `blue`, which holds a vote."""
    url = f"{live.url}/_ns/blue"
    extcli("vote", "cast", "--value", "3", "--url", url)
    yield url
    extcli("ns", "rm", "blue")


def test_namespaces_in_use_are_listed(extcli, blue):
    for where in ((), ("--url", blue)):
        assert ["blue"] in extcli("ns", "list", *where).rows
    assert "blue" in extcli("ns", "list", "-o", "json").json["namespaces"]
    assert "blue" in extcli("ns", "list", "-o", "jsonl").jsonl
    assert "blue" in extcli("ns", "list", "-o", "table").stdout
    extcli("ns", "rm", "blue", "--url", blue, exits=0)
    assert ["blue"] not in extcli("ns", "list").rows


@pytest.mark.parametrize("command", ["clock advance 1d --yes", "ns list", "ns rm blue --yes", "pin expire --yes"])
def test_a_production_service_has_no_control(extcli, production, command):
    extcli(*command.split(), "--url", production.url, exits=4)


@pytest.mark.parametrize("name", ["green", ""])
def test_a_new_namespace_is_printed_as_a_url(extcli, live, name: str):
    url = extcli("ns", "new", *[name] * bool(name)).stdout.strip()

    made = url.removeprefix(f"{live.url}/_ns/")
    assert [made] in extcli("ns", "list").rows
    assert name in ("", made)
    extcli("ns", "rm", made)


def test_a_fork_has_the_votes_of_its_source(extcli, live, blue):
    fork = extcli("ns", "fork", "blue", "fork-of-blue").stdout.strip()

    assert extcli("vote", "get", "--url", blue).stdout == extcli("vote", "get", "--url", fork).stdout != ""
    extcli("ns", "fork", "default", "blue", exits=4)
    extcli("ns", "rm", "fork-of-blue")
