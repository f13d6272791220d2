"""Commands of a caller without a channel: its writes belong to none, its deletes end all (ruling A4)."""

from __future__ import annotations

import pytest

WRITES = [
    ("vote", "cast", "x", "--value", "1"),
    ("vote", "define", "x", "--options", "A,B"),
    ("rank", "submit", "x", "--key", "blue"),
    ("accumulate", "add", "x", "1"),
]
REMOVALS = [("vote", "cast", "x", "--value", "1"), ("rank", "submit", "x", "--key", "blue")]


@pytest.mark.parametrize("command", WRITES, ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize(
    ("args", "warns"),
    [("--as backend", True), ("--as admin", True), ("--as backend --channel 5", False), ("--as broadcaster", False)],
)
def test_a_write_without_a_channel_reports_the_missing_channel(extcli, command, args, warns):
    assert warns == ("--channel" in extcli(*command, *args.split(), exits=0).stderr)
    global_x = ("vote", "cast", "global-x", "--value", "1", *args.split())
    assert "" == extcli(*global_x).stderr


def test_the_channel_of_a_given_token_counts(extcli):
    bound, unbound = (
        extcli("token", "sandbox", "--role", "backend", *args).stdout.strip() for args in (("--channel", "5"), ())
    )
    command = ("vote", "cast", "x", "--value", "1")

    assert "" == extcli(*command, env={"EXTCLI_TOKEN": bound}).stderr
    assert "belongs to no channel" in extcli(*command, env={"EXTCLI_TOKEN": unbound}).stderr
    assert "" == extcli(*command, "--channel", "6", env={"EXTCLI_TOKEN": unbound}).stderr


@pytest.mark.parametrize("command", REMOVALS, ids=lambda words: words[0])
def test_a_deletion_in_all_channels_needs_an_option(extcli, command):
    noun = command[0]
    for channel in ("5", "6"):
        extcli(*command, "--channel", channel)

    assert "--all-channels" in extcli(noun, "rm", "x", "--as", "admin", fails=2).stderr
    assert [True, True] == [bool(extcli(noun, "get", "x", "--channel", channel).rows) for channel in "56"]
    extcli(noun, "rm", "x", "--all-channels", "--as", "backend", exits=0)
    assert [False, False] == [bool(extcli(noun, "get", "x", "--channel", channel).rows) for channel in "56"]


@pytest.mark.parametrize("channel", ["", "--channel 7"])
def test_backend_defines_changes_and_deletes_what_all_channels_share(extcli, channel: str):
    """Ruling A4: a broadcaster may not, and a chosen role stays."""
    for line in (
        *("define --prompt Which? --ends-in 1h", "edit --prompt One?", "edit --disabled", "close", "reopen", "restart"),
        *("config", "rm"),
    ):
        verb, *options = line.split()
        extcli("vote", verb, "global-x", *options, *channel.split(), exits=0)
    extcli("rank", "submit", "global-x", "--key", "a")
    extcli("rank", "rm", "global-x", *channel.split(), exits=0)

    assert "" == extcli("vote", "get", "global-x").stdout + extcli("rank", "get", "global-x").stdout
    extcli("vote", "close", "global-x", "--as", "broadcaster", exits=4)
    extcli("vote", "define", "global-x", "--prompt", "Which?", env={"EXTCLI_AS": "broadcaster"}, exits=4)
