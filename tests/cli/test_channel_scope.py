"""Commands of a caller without a channel: its writes belong to none, its deletes end all (ruling A4)."""

from __future__ import annotations

import pytest

from support.program import http_response

WRITES = [
    ("vote", "cast", "x", "--value", "1"),
    ("vote", "define", "x", "--options", "A,B"),
    ("rank", "submit", "x", "--key", "blue"),
    ("accumulate", "add", "x", "1"),
]
REMOVALS = [("vote", "cast", "x", "--value", "1"), ("rank", "submit", "x", "--key", "blue")]


@pytest.mark.parametrize("command", WRITES, ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize("role", ["backend", "admin"])
def test_a_write_without_a_channel_reports_the_missing_channel(extcli, command, role):
    result = extcli(*command, "--as", role, exits=0)

    assert "belongs to no channel; --channel ID names one" in result.stderr


@pytest.mark.parametrize("command", WRITES, ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize("args", [("--as", "backend", "--channel", "5"), ("--as", "broadcaster")], ids=" ".join)
def test_a_write_in_a_channel_needs_no_warning(extcli, command, args):
    assert "" == extcli(*command, *args).stderr


def test_a_write_to_a_global_poll_needs_no_warning(extcli):
    assert "" == extcli("vote", "cast", "global-x", "--value", "1", "--as", "backend").stderr


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

    refused = extcli(noun, "rm", "x", "--as", "backend", fails=2)

    assert "x in all channels that have it (2)" in refused.stderr
    assert "--all-channels" in refused.stderr
    for channel in ("5", "6"):
        assert extcli(noun, "get", "x", "--channel", channel).rows


@pytest.mark.parametrize("args", [(), ("--as", "admin")], ids=["as backend", "as admin"])
@pytest.mark.parametrize("command", REMOVALS, ids=lambda words: words[0])
def test_all_channels_deletes_in_all_channels(extcli, command, args):
    noun = command[0]
    for channel in ("5", "6"):
        extcli(*command, "--channel", channel)

    result = extcli(noun, "rm", "x", "--all-channels", *args, "-o", "table", exits=0)

    assert result.stderr.endswith("x in all channels that have it (2) is deleted\n")
    for channel in ("5", "6"):
        assert not extcli(noun, "get", "x", "--channel", channel).rows


def test_deleting_in_all_channels_works_without_listings(extcli, answering):
    unknown = http_response("404 Not Found")  # the list, and then what the service is
    url = answering(unknown, unknown, http_response("200 OK"))
    token = extcli("token", "sandbox", "--role", "backend").stdout.strip()

    result = extcli("vote", "rm", "x", "--all-channels", "-o", "table", "--url", url, env={"EXTCLI_TOKEN": token})

    assert (0, "poll x in all channels is deleted\n") == (result.exit_code, result.stderr)


def test_a_global_poll_is_deleted_without_an_option(extcli):
    extcli("vote", "cast", "global-x", "--value", "1")

    assert 0 == extcli("vote", "rm", "global-x", "--as", "backend").exit_code

    assert "" == extcli("vote", "get", "global-x").stdout
