"""Times and durations as arguments of commands."""

from __future__ import annotations

import pytest

NOW = 1_900_000_000_000


@pytest.mark.parametrize("form", [("-1h",), ("-1h", "-o", "json"), ("-o", "json", "-1h"), ("--", "-1h")], ids=" ".join)
def test_the_clock_is_set_back_by_a_duration(extcli, live, form):
    live.set(NOW)
    live.freeze()

    assert 0 == extcli("clock", "set", *form).exit_code
    assert [[str(NOW - 3_600_000)]] == extcli("clock", "now").rows


@pytest.mark.parametrize("text", ["2026", "202612241830", "20261224183000", " 20261224 ", "19700101"])
def test_digits_that_may_be_a_date_are_refused(extcli, text):
    assert f"{text.strip()}.0" in extcli("clock", "set", text, fails=2).stderr


def test_every_option_of_a_time_refuses_digits_that_may_be_a_date(extcli):
    for line in (
        *("vote logs p --since", "accumulate get p --since", "vote define p --ends-at"),
        *("vote define p --starts-at", "codes mark-from-poll p --correct 1 --prize 0 --cutoff"),
    ):
        assert "20261224.0" in extcli(*line.split(), "20261224", fails=2).stderr


def test_fractions_of_a_second_are_rounded_up(extcli, live):
    live.set(NOW)

    for given, seconds in (("1ms", 1), ("0.5s", 1), ("1500ms", 2), ("2s", 2)):
        extcli("vote", "define", given.replace(".", "-"), "--options", "A,B", "--ends-in", given)
        found = extcli("vote", "config", given.replace(".", "-"), "-o", "json").json
        assert NOW // 1000 + seconds == found["endsAt"]
