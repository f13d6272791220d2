"""The shared options, their variables, and times and durations as arguments."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "args",
    [
        ("--as", "viewer:U5", "--channel", "9", "-o", "json", "user", "info"),
        ("user", "--as", "viewer:U5", "--channel", "9", "-o", "json", "info"),
        ("user", "info", "--as", "viewer:U5", "--channel", "9", "-o", "json"),
        ("--as", "viewer:U1", "--channel", "9", "user", "-o", "json", "info", "--as", "viewer:U5"),
    ],
    ids=["before", "between", "after", "the last counts"],
)
def test_shared_options_work_before_and_after_the_command(extcli, args):
    info = extcli(*args).json

    assert ("U5", "9") == (info["user_id"], info["channel_id"])


def test_an_empty_variable_counts_as_not_set(extcli):
    assert 0 == extcli("vote", "get", env={"EXTCLI_TOKEN": "", "EXTCLI_OUTPUT": "", "EXTCLI_SECRET": ""}).exit_code


@pytest.mark.parametrize(("error", "code"), [(ZeroDivisionError, 1), (KeyboardInterrupt, 130)])
def test_a_bug_exits_1_and_an_interrupt_130(extcli, monkeypatch, error, code):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("extcli.api.client.Service.get", fail)

    assert (code == 1) == ("this is a bug in extcli" in extcli("vote", "get", fails=code).stderr)


@pytest.mark.parametrize(
    "form", [("-5",), ("-qo", "plain", "-5"), ("--as=viewer:U1", "-5"), ("--", "-5")], ids=" ".join
)
def test_a_negative_number_can_be_an_argument(extcli, form):
    assert 0 == extcli("accumulate", "add", "numbers", *form).exit_code
    assert ["-5"] == [row[-1] for row in extcli("accumulate", "get", "numbers").rows]


@pytest.mark.parametrize("more", [(), ("--channel", "77")], ids=["default channel", "named channel"])
def test_a_named_broadcaster_owns_the_channel(extcli, more):
    info = extcli("user", "info", "-o", "json", "--as", "broadcaster:77", *more).json

    assert ("broadcaster", "77", "77") == (info["role"], info["user_id"], info["channel_id"])


# Times and durations


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
