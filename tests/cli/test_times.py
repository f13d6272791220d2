"""Times and durations as arguments of commands."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(("given", "seconds"), [("1ms", 1), ("500ms", 1), ("1500ms", 2), ("2s", 2)])
def test_fractions_of_a_second_are_rounded_up(extcli, live, given, seconds):
    live.set(1_900_000_000_000)

    extcli("vote", "define", "opening", "--options", "A,B", "--starts-in", given)
    extcli("vote", "define", "closing", "--options", "A,B", "--ends-in", given)

    assert 1_900_000_000 + seconds == extcli("vote", "config", "opening", "-o", "json").json["startsAt"]
    assert 1_900_000_000 + seconds == extcli("vote", "config", "closing", "-o", "json").json["endsAt"]


NOW = 1_900_000_000_000


@pytest.mark.parametrize("text", ["1900000090", "1900000090000", "2030-03-17T17:48:10Z", "90s"])
def test_a_point_in_time_is_given_in_any_form(extcli, live, text):
    live.set(NOW)

    extcli("vote", "define", "lunch", "--options", "A,B", "--ends-at", text)

    assert 1_900_000_090 == extcli("vote", "config", "lunch", "-o", "json").json["endsAt"]
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


@pytest.mark.parametrize("form", [("-1h",), ("-1h", "-o", "json"), ("-o", "json", "-1h"), ("--", "-1h")], ids=" ".join)
def test_the_clock_is_set_back_by_a_duration(extcli, live, form):
    live.set(NOW)
    live.freeze()

    assert 0 == extcli("clock", "set", *form).exit_code
    assert [[str(NOW - 3_600_000)]] == extcli("clock", "now").rows


@pytest.mark.parametrize("text", ["20261224", "2026", "202612241830", "20261224183000", " 20261224 ", "19700101"])
@pytest.mark.parametrize(
    "command",
    [
        *("clock set", "vote logs p --since", "accumulate get p --since", "vote define p --ends-at"),
        *("vote define p --starts-at", "codes mark-from-poll p --correct 1 --prize 0 --cutoff"),
    ],
)
def test_digits_that_may_be_a_date_are_refused(extcli, command, text):
    assert f"{text.strip()}.0" in extcli(*command.split(), text, fails=2).stderr


@pytest.mark.parametrize(
    ("text", "now"),
    [
        ("20261224.0", 20_261_224_000),
        ("20261324", 20_261_324_000),
        ("2026122418", 2_026_122_418_000),
        ("1000", 1_000_000),
        ("202699999999", 202_699_999_999),
    ],
)
def test_other_digits_are_unix_time(extcli, live, text, now):
    live.freeze()

    assert now == extcli("clock", "set", text, "-o", "json", exits=0).json["now"]
