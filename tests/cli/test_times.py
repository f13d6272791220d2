"""Times and durations as arguments of commands."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(("given", "seconds"), [("1ms", 1), ("500ms", 1), ("1500ms", 2), ("2s", 2)])
def test_fractions_of_a_second_are_rounded_up(extcli, live, given, seconds):
    live.set(1_900_000_000_000)

    extcli("vote", "define", "opening", "--options", "A,B", "--starts-in", given)
    extcli("vote", "define", "closing", "--options", "A,B", "--ends-in", given)

    assert 1_900_000_000 + seconds == extcli("vote", "define", "opening", "--show", "-o", "json").json["startsAt"]
    assert 1_900_000_000 + seconds == extcli("vote", "define", "closing", "--show", "-o", "json").json["endsAt"]


NOW = 1_900_000_000_000


@pytest.mark.parametrize("text", ["1900000090", "1900000090000", "2030-03-17T17:48:10Z", "90s"])
def test_the_end_of_a_poll_is_a_time_in_any_form(extcli, live, text):
    live.set(NOW)

    extcli("vote", "define", "lunch", "--options", "A,B", "--ends-at", text)

    assert 1_900_000_090 == extcli("vote", "define", "lunch", "--show", "-o", "json").json["endsAt"]


@pytest.mark.parametrize("text", ["1900000090", "1900000090000", "2030-03-17T17:48:10Z", "90s"])
def test_the_clock_is_set_to_a_time_in_any_form(extcli, live, text):
    live.set(NOW)

    assert NOW + 90_000 == extcli("clock", "set", text, "-o", "json").json["now"]


@pytest.mark.parametrize("text", ["1900000090", "1900000090000", "2030-03-17T17:48:10Z", "10s"])
@pytest.mark.parametrize(
    "command", [("vote", "logs", "p", "--since"), ("accumulate", "get", "p", "--since")], ids=" ".join
)
def test_since_is_a_time_in_any_form(extcli, live, command, text):
    for at in (NOW, NOW + 95_000):
        live.set(at)
        extcli("vote", "cast", "p", "--value", "1", "--as", f"viewer:U{at}")
        extcli("accumulate", "add", "p", "1")

    assert 1 == len(extcli(*command, text).rows)


def test_a_timeout_is_at_most_what_a_socket_can_wait(extcli):
    assert 0 == extcli("vote", "get", "--timeout", "24d").exit_code

    refused = extcli("vote", "get", "--timeout", "25d")

    assert (2, "extcli: '25d' (--timeout) is longer than 24d") == (refused.exit_code, refused.stderr.splitlines()[0])


@pytest.mark.parametrize("form", [("-1h",), ("-1h", "-o", "json"), ("-o", "json", "-1h"), ("--", "-1h")], ids=" ".join)
def test_the_clock_is_set_back_by_a_duration(extcli, live, form):
    live.set(NOW)
    live.freeze()

    assert 0 == extcli("clock", "set", *form).exit_code
    assert [[str(NOW - 3_600_000)]] == extcli("clock", "now").rows
